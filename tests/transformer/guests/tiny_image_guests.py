"""Tiny random checkpoints of models that read images, made by Hugging Face's classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.transformer.guests.tiny_guests import Made, network
from tests.transformer.text.foreign_folders import byte_level

_SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}
_DINO = {**{name: value for name, value in _SIZES.items() if name != "intermediate_size"}, "mlp_ratio": 2}
_TEXT = {
    "vocab_size": 400,
    "bos_token_id": 1,
    "eos_token_id": 3,
    "hidden_size": 24,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
_TOWERS = {"vision_config": _SIZES, "text_config": {**_TEXT, "max_position_embeddings": 16}, "projection_dim": 20}
_LIKE_IMAGES = {**_TOWERS, "text_config": {**_TOWERS["text_config"], "projection_size": 32}}
_SHORTEST = {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32}}
_WHOLE = {"size": {"height": 32, "width": 32}}

# model_type: class, config, image processor and what differs from its defaults, names of the tokens before the patches
IMAGE_GUESTS: dict[str, tuple[str, dict[str, Any], tuple[str, dict[str, Any]], tuple[str, ...]]] = {
    "vit": (
        "ViTForImageClassification",
        {**_SIZES, "id2label": {0: "cat", 1: "dog", 2: "house"}},
        ("ViTImageProcessor", _WHOLE),
        ("[CLS]",),
    ),
    "dinov2": ("Dinov2Model", _DINO, ("BitImageProcessor", _SHORTEST), ("[CLS]",)),
    "dinov2_with_registers": (
        "Dinov2WithRegistersModel",
        {**_DINO, "num_register_tokens": 3},
        ("BitImageProcessor", {**_SHORTEST, "crop_size": {"height": 24, "width": 40}}),
        ("[CLS]", "[REG1]", "[REG2]", "[REG3]"),
    ),
    "siglip": ("SiglipModel", _LIKE_IMAGES, ("SiglipImageProcessor", _WHOLE), ()),
    "clip": ("CLIPModel", _TOWERS, ("CLIPImageProcessor", _SHORTEST), ("[CLS]",)),
    "deit": (
        "DeiTForImageClassification",
        {**_SIZES, "id2label": {0: "cat", 1: "dog"}},
        ("DeiTImageProcessor", {"size": {"height": 36, "width": 36}, "crop_size": {"height": 32, "width": 32}}),
        ("[CLS]", "[DIST]"),
    ),
}
_CLASSES = {"id2label": {0: "cat", 1: "dog"}}
# Classifiers in no list, whose images are prepared as those of "vit": class and config
IMAGE_CLASSIFIERS: dict[str, Made] = {
    "beit": ("BeitForImageClassification", {**_SIZES, **_CLASSES, "use_relative_position_bias": True}),
    "beit, absolute": (
        "BeitForImageClassification",
        {**_SIZES, **_CLASSES, "use_absolute_position_embeddings": True},
    ),
    "data2vec-vision": (
        "Data2VecVisionForImageClassification",
        {**_SIZES, **_CLASSES, "use_absolute_position_embeddings": True},
    ),
    "clip classifier": ("CLIPForImageClassification", {**_TOWERS, **_CLASSES}),
}


def processor(kind: str) -> Any:
    """Return the image processor of ``transformers`` for a tiny checkpoint."""
    import transformers

    name, fields = IMAGE_GUESTS[kind][2]
    return getattr(transformers, f"{name}Pil")(**fields)


def _tokenizer(frame: str) -> Any:
    from tokenizers import processors

    backend = byte_level(special=("<pad>", "<s>", "<unk>", "</s>"))
    ends = [("<s>", 1), ("</s>", 3)]
    backend.post_processor = processors.TemplateProcessing(single=frame, special_tokens=ends)
    return backend


def image_checkpoint(kind: str, folder: Path, made: Made | None = None) -> Path:
    """Write ``folder/kind``: config, weights, image processor, and the tokenizer of a text tower.

    ``made`` has the class and the fields of a type that is in no table; its images are prepared as those of "vit".
    """
    path = folder / kind
    path.mkdir(parents=True)
    network(*(made or IMAGE_GUESTS[kind][:2])).save_pretrained(path)
    if made is None and kind in ("clip", "siglip"):
        _tokenizer("<s> $A </s>" if kind == "clip" else "$A </s>").save(str(path / "tokenizer.json"))
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
        settings |= {"pad_token": "</s>"} if kind == "siglip" else {}
        (path / "tokenizer_config.json").write_text(json.dumps(settings))
    (path / "preprocessor_config.json").write_text(
        json.dumps(processor("vit" if made else kind).to_dict(), default=str)
    )
    return path
