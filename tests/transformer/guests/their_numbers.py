"""A guest compared with the same folder as the code of ``transformers`` opens it alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from transformer import Checkpoint, ModelConfig, Trace
from transformer.models import Model
from transformer.pictures.image_files import image_text, read_image
from transformer.probes import record
from transformer.runs.inputs import source_tensor

TOLERANCE = 1e-4  # for a sum of thousands of products in another order
SIZES = ((97, 61), (61, 97), (224, 224), (500, 40))  # width and height of the random images


def their_model(checkpoint: Checkpoint) -> Any:
    import transformers

    path, name, given = checkpoint.path, checkpoint.config.architecture, {}
    if path.is_file():  # GGUF
        path, given = path.parent, {"gguf_file": path.name}
    elif checkpoint.config.reads_images:  # the whole of two towers
        name = json.loads((path / "config.json").read_text())["architectures"][0]
    model_class = getattr(transformers, name)
    return model_class.from_pretrained(path, attn_implementation="eager", dtype=torch.float32, **given).eval()


def maps_of(config: ModelConfig, expected: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the maps of an output of ``transformers`` under our names."""
    if config.kind != "encoder-decoder":
        stack = "encoder" if config.has_encoder else "decoder"
        named = {f"{stack}.layers.{{}}.self_attention.weights": expected.attentions}
    else:
        named = {
            "encoder.layers.{}.self_attention.weights": expected.encoder_attentions,
            "decoder.layers.{}.self_attention.weights": expected.decoder_attentions,
            "decoder.layers.{}.cross_attention.weights": expected.cross_attentions,
        }
    for name, layers in named.items():
        for index, weights in enumerate(layers):
            yield name.format(index), weights


def padded_texts(config: ModelConfig, length: int, *, start: int = 0) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Return two random texts as our inputs and as theirs; an encoder's second one ends in padding.

    ``start`` is the token with which a decoder beside an encoder begins.
    """
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(5, config.vocabulary_size - 2, (2, length), generator=generator)
    real = torch.ones_like(ids)
    if config.has_encoder and length > 4:
        ids[1, -2:], real[1, -2:] = config.pad_id, 0
    if config.kind != "encoder-decoder":
        return [ids], {"input_ids": ids, "attention_mask": real}
    target = torch.randint(5, config.vocabulary_size - 2, (2, max(1, length - 2)), generator=generator)
    target[:, 0] = start
    return [ids, target], {"input_ids": ids, "attention_mask": real, "decoder_input_ids": target}


def _pooled(hidden: Tensor, real: Tensor, way: str) -> Tensor:
    """Return vectors, [text, channel], of hidden states, [text, position, channel], without padding."""
    vectors = [text[kept] for text, kept in zip(hidden, real, strict=True)]
    ways = {"mean": lambda each: each.mean(dim=0), "first": lambda each: each[0], "max": lambda each: each.amax(dim=0)}
    return torch.stack([ways[way](each) for each in vectors])


def equals_theirs(model: Model, theirs: Any, length: int, *, start: int = 0, tolerance: float = 2e-5) -> int:
    """Check the output and every map of two texts against the model's own code; return how many maps.

    float32 rounds a score of 25 (mT5, whose scores are not scaled) to multiples of 2e-6. A sum in another order moves
    it by one or two of these, and a weight by as much.
    """
    config = model.config
    inputs, asked = padded_texts(config, length, start=start)
    with torch.inference_mode():
        with record() as recording:
            logits = model(*inputs)
        assert torch.equal(logits, model(*inputs)), "a recording changes nothing"
        expected = theirs(**asked, output_attentions=True)
    real, maps = asked["attention_mask"].bool(), dict(maps_of(config, expected))
    wanted = expected.get("prediction_logits", expected.get("logits"))
    if config.pooling:
        wanted = _pooled(expected.last_hidden_state, real, config.pooling)
    elif config.kind == "encoder-only" and not config.n_classes:
        logits, wanted = logits[real], wanted[real]
    assert (logits - wanted).abs().max() <= tolerance * max(1.0, float(wanted.abs().max())), length
    for name, weights in maps.items():
        shown, scores = recording.tensors[name], recording.tensors[name.replace("weights", "scores")]
        if name.startswith("encoder"):  # the attention of padding is meaningless
            shown, weights = shown.transpose(1, 2)[real], weights.transpose(1, 2)[real]
        rounded = 2 * 2**-23 * float(scores[scores > -1e30].abs().max())
        assert (shown - weights).abs().max() <= max(tolerance, rounded), (name, length)
    assert len(maps) == sum(name.endswith("attention.weights") for name in recording.tensors)
    return len(maps)


def check_trace(found: Trace, **asked: Tensor) -> None:
    """Check the logits and every map of a trace; ``asked`` is given to their model beside its ids."""
    given = {"input_ids": torch.tensor([(found.source or found.target).ids])}
    if found.source and found.target:
        given["decoder_input_ids"] = torch.tensor([found.target.ids])
    with torch.no_grad():
        expected = their_model(found.checkpoint)(**given, **asked, output_attentions=True)
    config = found.checkpoint.config
    logits = "classifier.logits" if config.n_classes else f"{found.stacks[-1]}.logits"
    theirs = expected.get("prediction_logits", expected.get("logits"))  # the former beside a next-sentence head
    np.testing.assert_allclose(found.values(logits), theirs[0].numpy(), atol=2e-5)
    for name, weights in maps_of(config, expected):
        np.testing.assert_allclose(found.values(name), weights[0].numpy(), atol=2e-5, err_msg=name)


def image_of_noise(width: int, height: int) -> str:
    """Return the text of a random image, of blocks that survive a change of size."""
    blocks = np.random.default_rng(width).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(blocks).resize((width, height), Image.Resampling.BILINEAR).save(file, "PNG")
    return image_text(file.getvalue())


def images_equal_theirs(checkpoint: Checkpoint, *, tolerance: float = 0.0) -> None:
    """Check pixels, every map, and logits or last vectors of random images."""
    import transformers

    config, theirs = checkpoint.config, their_model(checkpoint)
    tower = theirs if theirs.main_input_name == "pixel_values" else theirs.vision_model
    processor = transformers.AutoImageProcessor.from_pretrained(checkpoint.path, local_files_only=True, backend="pil")
    for size in SIZES:
        text = image_of_noise(*size)
        ids, image = source_tensor(checkpoint, text), read_image(text)
        pixels = torch.from_numpy(np.asarray(processor(image)["pixel_values"]))
        with torch.inference_mode():
            with record(names={name for name in checkpoint.model.probes if name.endswith("attention.weights")}) as maps:
                shown = checkpoint.model.encode(ids)
            expected = tower(pixel_values=pixels, output_attentions=True)
            wanted = expected.last_hidden_state if not config.n_classes else expected.logits
            shown = checkpoint.model.classify(shown, ids) if config.n_classes else shown
        assert _largest(config.image.preprocessing.pixels(image), pixels[0]) <= 1e-6, size
        assert _largest(shown, wanted) <= tolerance, size
        named = dict(maps_of(config, expected))
        assert len(named) == len(maps.tensors)
        assert all(_largest(maps.tensors[name], weights) <= tolerance for name, weights in named.items()), size


def _largest(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).abs().max())
