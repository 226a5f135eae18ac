"""From an image to the numbers that a model reads, as ``preprocessor_config.json`` says.

Resize, crop in the centre, scale to 0 … 1, subtract the mean and divide by the standard deviation of each channel, in
this order, as in the image processors of ``transformers``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from transformer.config import is_number
from transformer.errors import CheckpointError
from transformer.pictures.image_files import MAX_PIXELS

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_SIDE = 2048  # pixels of a resized or cropped image
_STEPS = ("do_resize", "do_center_crop", "do_rescale", "do_normalize")
_UNKNOWN = ("do_pad", "do_split_image", "do_image_splitting", "do_flip_channel_order", "do_color_quantize")


@dataclass(frozen=True)
class Preprocessing:
    """Settings of an image processor.

    Attributes:
        size: (height, width) after resizing; ``None`` if only ``shortest`` is set, or nothing is resized.
        shortest: Length of the shorter side after resizing, which keeps the proportions; 0 if ``size`` is set.
        resample: Number of Pillow's filter.
        crop: (height, width) of the centre that is cut out.
        factor: What each value, 0 to 255, is multiplied by.
        mean: Subtracted from each channel.
        std: What each channel is divided by.
    """

    size: tuple[int, int] | None = None
    shortest: int = 0
    resample: int = 2
    crop: tuple[int, int] | None = None
    factor: float = 1.0
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width) of what the model reads.

        Raises:
            CheckpointError: If it depends on the image.
        """
        if (found := self.crop or self.size) is None:
            raise CheckpointError("its image processor neither crops nor resizes to one size, which is not supported")
        return found

    def cut(self, image: Image) -> Image:
        """Return the part of an RGB image that the model reads, in its size."""
        if self.size is not None or self.shortest:
            image = image.resize(self.resized(*image.size)[::-1], self.resample)
        return image if self.crop is None else _centre(image, self.crop)

    def resized(self, width: int, height: int) -> tuple[int, int]:
        """Return (height, width) after an image has been resized."""
        if self.size is not None:
            return self.size
        long = int(self.shortest * max(width, height) / min(width, height))
        long = min(long, max(self.shortest, MAX_PIXELS // self.shortest))  # for an image of a few pixels' height
        return (long, self.shortest) if width <= height else (self.shortest, long)

    def pixels(self, image: Image) -> Tensor:
        """Return what the model reads of an RGB image, [channel, row, column]."""
        values = np.asarray(self.cut(image)).astype(np.float64) * self.factor
        normalised = (values.astype(np.float32) - np.float32(self.mean)) / np.float32(self.std)
        return torch.from_numpy(np.ascontiguousarray(normalised.transpose(2, 0, 1)))

    def shades(self, pixels: Tensor) -> Tensor:
        """Undo the normalisation of ``pixels``: return values from 0 to 1."""
        mean, std = (torch.tensor(each).view(3, 1, 1) for each in (self.mean, self.std))
        return ((pixels * std + mean) / (255.0 * self.factor)).clamp(0.0, 1.0)


def _centre(image: Image, crop: tuple[int, int]) -> Image:
    """Cut out the centre; an image that is too small is surrounded by black."""
    from PIL import Image as images

    (width, height), (rows, columns) = image.size, crop
    if width < columns or height < rows:
        padded = images.new("RGB", (max(columns, width), max(rows, height)))
        padded.paste(image, (math.ceil((padded.width - width) / 2), math.ceil((padded.height - height) / 2)))
        image, (width, height) = padded, padded.size
    left, top = (width - columns) // 2, (height - rows) // 2
    return image.crop((left, top, left + columns, top + rows))


def preprocessing_of(fields: Mapping[str, Any]) -> Preprocessing:
    """Return the settings of an image processor from its fields, all of which are given.

    Raises:
        CheckpointError: If it does something that is not supported, or a value is wrong.
    """
    for name in _UNKNOWN:
        if fields.get(name):
            raise CheckpointError(f"its image processor has {name}, which is not supported")
    resize, crop, rescale, normalise = (bool(fields.get(name)) for name in _STEPS)
    found: dict[str, Any] = {}
    if resize:
        found |= _size(fields.get("size"), square=bool(fields.get("default_to_square", True)))
        found["resample"] = _whole("resample", fields.get("resample"), most=5)
    if crop:
        sides = _size(fields.get("crop_size"), square=True)
        found["crop"] = sides.get("size") or (sides["shortest"],) * 2
    if rescale:
        found["factor"] = _number("rescale_factor", fields.get("rescale_factor"))
    if normalise:
        found |= {"mean": _channels("image_mean", fields), "std": _channels("image_std", fields)}
        if not all(found["std"]):
            raise _wrong("image_std", fields.get("image_std"))
    return Preprocessing(**found)


def _size(value: Any, *, square: bool) -> dict[str, Any]:
    """Return ``size`` or ``shortest`` from a size as image processors write it."""
    if isinstance(value, dict):
        sides = {name: side for name, side in value.items() if side is not None}
        if set(sides) == {"height", "width"}:
            return {"size": (_whole("size", sides["height"]), _whole("size", sides["width"]))}
        if set(sides) == {"shortest_edge"}:
            return {"shortest": _whole("size", sides["shortest_edge"])}
        raise _wrong("size", value)
    if isinstance(value, (list, tuple)) and len(value) == 2:
        return {"size": (_whole("size", value[0]), _whole("size", value[1]))}
    side = _whole("size", value)
    return {"size": (side, side)} if square else {"shortest": side}


def _channels(name: str, fields: Mapping[str, Any]) -> tuple[float, ...]:
    value = fields.get(name)
    values = value if isinstance(value, (list, tuple)) else [value] * 3
    if len(values) != 3:
        raise _wrong(name, value)
    return tuple(_number(name, each) for each in values)


def _whole(name: str, value: Any, most: int = MAX_SIDE) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most or (not value and most > 5):
        raise _wrong(name, value)
    return value


def _number(name: str, value: Any) -> float:
    if not is_number(value):
        raise _wrong(name, value)
    return float(value)


def _wrong(name: str, value: Any) -> CheckpointError:
    return CheckpointError(f"its image processor sets {name} to {repr(value)[:80]}, which is not supported")
