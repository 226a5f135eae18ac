"""A guest compared with the same folder as the code of ``transformers`` opens it alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from transformer import Checkpoint
from transformer.pictures.image_files import image_text, read_image
from transformer.probes import record
from transformer.runs.inputs import source_tensor

TOLERANCE = 1e-4  # for a sum of thousands of products in another order
SIZES = ((97, 61), (61, 97), (224, 224), (500, 40))  # width and height of the random images


@dataclass(frozen=True)
class Comparison:
    """Largest differences for one input; without logits, those of the sentence vector or the last vectors."""

    length: int
    logits: float
    attention: float
    pixels: float = 0.0

    @property
    def largest(self) -> float:
        return max(self.logits, self.attention, self.pixels)

    @property
    def agrees(self) -> bool:
        return self.largest <= TOLERANCE


def their_model(checkpoint: Checkpoint) -> Any:
    import transformers

    named = json.loads((checkpoint.path / "config.json").read_text())["architectures"][0]  # the whole of two towers
    model_class = getattr(transformers, named if checkpoint.config.reads_images else checkpoint.config.architecture)
    return model_class.from_pretrained(checkpoint.path, attn_implementation="eager", dtype=torch.float32).eval()


def compare(checkpoint: Checkpoint, *, lengths: tuple[int, ...] = (1, 9, 33)) -> list[Comparison]:
    """Compare logits and every map on random texts."""
    theirs = their_model(checkpoint)
    return [_compare(checkpoint, theirs, length) for length in lengths]


def _compare(checkpoint: Checkpoint, theirs: Any, length: int) -> Comparison:
    inputs = _texts(checkpoint, length)
    asked = dict(zip(("input_ids", "decoder_input_ids"), inputs, strict=False))
    with torch.inference_mode(), record() as recording:
        logits = checkpoint.model(*inputs)
        expected = theirs(**asked, attention_mask=torch.ones_like(inputs[0]), output_attentions=True)
    if checkpoint.config.encodes_sentences:
        hidden = expected.last_hidden_state  # [batch, position, model]
        ways = {"mean": hidden.mean(dim=1), "first": hidden[:, 0], "max": hidden.amax(dim=1)}
        wanted = ways[checkpoint.config.pooling]
    else:
        wanted = expected["logits"]
    maps = [_largest(recording.tensors[name], weights) for name, weights in maps_of(checkpoint, expected)]
    return Comparison(length, _largest(logits, wanted), max(maps))


def _texts(checkpoint: Checkpoint, length: int) -> list[Tensor]:
    """Return random ids of text, [1, ``length``] per stack; a decoder beside an encoder begins as usual."""
    generator = torch.Generator().manual_seed(length)
    words = torch.tensor([id for id in range(checkpoint.config.vocabulary_size) if id not in checkpoint.special])
    draw = [words[torch.randint(len(words), (1, length), generator=generator)] for _ in range(2)]
    if checkpoint.config.kind != "encoder-decoder":
        return draw[:1]
    draw[1][0, 0] = checkpoint.framing.answer[0]
    return draw


def maps_of(checkpoint: Checkpoint, expected: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the maps of an output of ``transformers`` under our names."""
    if checkpoint.config.kind != "encoder-decoder":
        stack = "encoder" if checkpoint.config.has_encoder else "decoder"
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


def image_of_noise(width: int, height: int) -> str:
    """Return the text of a random image, of blocks that survive a change of size."""
    blocks = np.random.default_rng(width).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(blocks).resize((width, height), Image.Resampling.BILINEAR).save(file, "PNG")
    return image_text(file.getvalue())


def compare_images(checkpoint: Checkpoint) -> list[Comparison]:
    """Compare pixels, every map, and logits or last vectors on random images."""
    theirs = their_model(checkpoint)
    return [_compare_image(checkpoint, theirs, image_of_noise(*size)) for size in SIZES]


def _compare_image(checkpoint: Checkpoint, theirs: Any, image: str) -> Comparison:
    import transformers

    ids = source_tensor(checkpoint, image)
    processor = transformers.AutoImageProcessor.from_pretrained(checkpoint.path, local_files_only=True, backend="pil")
    pixels = torch.from_numpy(np.asarray(processor(read_image(image))["pixel_values"]))
    tower = theirs if theirs.main_input_name == "pixel_values" else theirs.vision_model
    with torch.inference_mode():
        with record(names={name for name in checkpoint.model.probes if name.endswith("attention.weights")}) as maps:
            hidden = checkpoint.model.encode(ids)
        expected = tower(pixel_values=pixels, output_attentions=True)
        if checkpoint.config.n_classes:
            output = _largest(checkpoint.model.classify(hidden, ids), expected.logits)
        else:
            output = _largest(hidden, expected.last_hidden_state)
    read = _largest(checkpoint.config.image.preprocessing.pixels(read_image(image)), pixels[0])
    differences = [_largest(maps.tensors[name], weights) for name, weights in maps_of(checkpoint, expected)]
    return Comparison(ids.shape[1], output, max(differences), read)


def _largest(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).abs().max())
