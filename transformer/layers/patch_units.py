"""Units of a Vision Transformer that respond to where in an image patch the ink is.

A unit of such a model promotes no words. What it responds to is seen in the patches for which it has its largest values
over many images: if they have something in common, the unit can be read (Olah et al. 2017, "Feature Visualization",
the examples from the data set).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer.config import PictureConfig
from transformer.files.checkpoints import Checkpoint
from transformer.probes import record
from transformer.runs.inputs import source_tensor
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

SIDES = ("left", "right", "top", "bottom")
PATCHES = 8  # with a unit's largest values
LEAST_ALIKE = 7  # smallest number of them with more ink on the same side
_MORE = 0.25  # ink, of 1, that one half of a patch has more than the other on average, if it is on that side


@dataclass(frozen=True)
class ImageValues:
    """The feed-forward units of all layers for every patch of several images.

    Attributes:
        ink: [image × patch, row, column], 0 to 1.
        hidden: For each layer [image × patch, unit].
        n_images: How many images they are of.
    """

    ink: np.ndarray
    hidden: tuple[np.ndarray, ...]
    n_images: int

    def strongest(self, layer: int, unit: int) -> np.ndarray:
        """Return the patches with the unit's largest values, largest first."""
        return np.argsort(-self.hidden[layer][:, unit], kind="stable")[:PATCHES]

    def share(self, side: str) -> float:
        """Return the share of all patches that have more ink on a side."""
        return float(on_side(self.ink)[SIDES.index(side)].mean())


@dataclass(frozen=True)
class PatchUnit:
    """A unit whose strongest patches have more ink on the same side.

    Attributes:
        position: The token at which its value is largest in the image, and which has its ink on that side, too.
        side: One of ``SIDES``.
        n_alike: How many of the ``PATCHES`` strongest patches have more ink there.
    """

    layer: int
    unit: int
    position: int
    side: str
    n_alike: int


def image_values(checkpoint: Checkpoint, images: Sequence[str]) -> ImageValues:
    """Run a model that reads images over several of them."""
    if not isinstance(checkpoint.config, PictureConfig):
        raise ValueError(f"{checkpoint.name} reads no images of this app; only their patches have pixels to compare")
    ids = torch.cat([source_tensor(checkpoint, image) for image in images])
    names = [f"encoder.layers.{layer}.feed_forward.hidden" for layer in range(checkpoint.config.n_encoder_layers)]
    with torch.inference_mode(), record(names=names) as recording:
        checkpoint.model(ids.to(checkpoint.model.device))
    tokens = [checkpoint.tokenizer.sequence(image) for image in ids.tolist()]
    places = list(tokens[0].patches)
    return ImageValues(
        np.concatenate([ink_of(image) for image in tokens]),
        tuple(recording.tensors[name][:, places].flatten(0, 1).float().cpu().numpy() for name in names),
        len(images),
    )


def ink_of(tokens: TokenSequence) -> np.ndarray:
    """Return the ink of every patch of an image, 0 to 1: [patch, row, column]."""
    size = round(len(tokens[tokens.patches[0]].pixels) ** 0.5)
    return np.array([tokens[at].pixels for at in tokens.patches], dtype=float).reshape(-1, size, size)


def on_side(ink: np.ndarray) -> np.ndarray:
    """Return whether each patch has clearly more ink on each of ``SIDES``: [side, patch]."""
    half = ink.shape[1] // 2
    right = ink[:, :, -half:].mean(axis=(1, 2)) - ink[:, :, :half].mean(axis=(1, 2))
    bottom = ink[:, -half:].mean(axis=(1, 2)) - ink[:, :half].mean(axis=(1, 2))
    return np.stack([-right, right, -bottom, bottom]) >= _MORE


def patch_units(run: Trace, values: ImageValues, *, count: int = 4) -> tuple[PatchUnit, ...]:
    """Return the units that respond to where the ink is and fire in this image, at most one per side.

    At least ``LEAST_ALIKE`` of a unit's strongest patches over all images have more ink on one side, and so has the
    patch of this image at which the unit has its largest value. Of several units for a side, the
    result has the one that best separates the patches on that side from the others (``_separation``), in this image and
    in all images, and is near 0 at the median patch.
    """
    sides, here = on_side(values.ink), on_side(ink_of(run.tokens("encoder")))
    places = run.tokens("encoder").patches
    best: dict[str, tuple[float, PatchUnit]] = {}
    for layer, hidden in enumerate(values.hidden):
        own = _hidden(run, layer)
        for unit in range(hidden.shape[1]):
            strongest = values.strongest(layer, unit)
            alike = sides[:, strongest].sum(axis=1)
            at, side = int(own[:, unit].argmax()), int(alike.argmax())
            if alike[side] < LEAST_ALIKE or not here[side, at] or own[at, unit] <= 0:
                continue
            told_apart = _separation(own[:, unit], here[side]) * _separation(hidden[:, unit], sides[side])
            clear = told_apart * (1 - max(0.0, float(np.median(own[:, unit]) / own[at, unit])))
            found = PatchUnit(layer, unit, places[at], SIDES[side], int(alike[side]))
            if clear > best.get(SIDES[side], (0.0, found))[0]:
                best[SIDES[side]] = clear, found
    ranked = sorted(best.values(), key=lambda each: each[0], reverse=True)
    return tuple(unit for _, unit in ranked[:count])


def _separation(values: np.ndarray, chosen: np.ndarray) -> float:
    """Return the share of pairs of a chosen and another patch in which the chosen one is larger."""
    return float((values[chosen][:, None] > values[~chosen]).mean()) if 0 < chosen.sum() < len(chosen) else 0.0


def _hidden(run: Trace, layer: int) -> np.ndarray:
    return run.values(f"encoder.layers.{layer}.feed_forward.hidden")[list(run.tokens("encoder").patches)]
