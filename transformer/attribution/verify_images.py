"""Comparison of a model that reads images with Hugging Face's code, from the file to the output."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.files.verify import Comparison, their_model
from transformer.pictures.image_files import image_text, read_image
from transformer.probes import record
from transformer.runs.inputs import source_tensor

SIZES = ((97, 61), (61, 97), (224, 224), (500, 40))  # width and height of the random images


def image_of_noise(width: int, height: int) -> str:
    """Return the text of a random image, of blocks that survive a change of size."""
    blocks = np.random.default_rng(width).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(blocks).resize((width, height), Image.Resampling.BILINEAR).save(file, "PNG")
    return image_text(file.getvalue())


def verify_images(
    checkpoint: Checkpoint, *, progress: Callable[[int, int], None] | None = None
) -> tuple[Comparison, ...]:
    """Do what ``verify`` does, on random images, for a model that reads images.

    Also compared are the pixels that the model reads.

    Raises:
        ModuleNotFoundError: If ``transformers`` is missing.
        ValueError: If the checkpoint is our own, so that there is nothing to compare it with.
    """
    theirs, found = their_model(checkpoint), []
    for number in range(len(SIZES)):
        if progress is not None:
            progress(number, len(SIZES))
        found.append(_compare(checkpoint, theirs, number))
    return tuple(found)


def _compare(checkpoint: Checkpoint, theirs: Any, number: int) -> Comparison:
    import transformers

    image = image_of_noise(*SIZES[number])
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
    differences = {}
    for layer, weights in enumerate(expected.attentions):
        name = f"encoder.layers.{layer}.self_attention.weights"
        differences[name] = _largest(maps.tensors[name], weights)
    worst = max(differences, key=differences.__getitem__)
    return Comparison(ids.shape[1], output, differences[worst], worst, read)


def _largest(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).abs().max())
