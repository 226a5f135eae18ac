"""Images as numbers: pixels [row, column] ↔ patches [patch, pixel] ↔ ids, one per patch.

x ∈ R^(H×W) becomes x_p ∈ R^(N×P²), N = HW / P² patches in reading order, each flattened in reading order (Dosovitskiy
et al. 2021, §3.1). A patch has finitely many values, so each has a number: its pixels are the digits, the first the
highest, to the base ``n_levels``; the ids of special tokens come before them.
"""

import torch
from torch import Tensor

from transformer.config import SPECIAL_TOKENS, PictureConfig

N_SPECIAL = len(SPECIAL_TOKENS)


def patches_of(pixels: Tensor, patch_size: int) -> Tensor:
    """Cut […, row, column] into […, patch, pixel]."""
    *batch, height, width = pixels.shape
    rows, columns = height // patch_size, width // patch_size
    cut = pixels.reshape(*batch, rows, patch_size, columns, patch_size).transpose(-3, -2)
    return cut.reshape(*batch, rows * columns, patch_size**2)


def pixels_of(patches: Tensor, config: PictureConfig) -> Tensor:
    """Join […, patch, pixel] into […, row, column]; the inverse of ``patches_of``."""
    size, side = config.patch_size, config.picture_size // config.patch_size
    laid = patches.reshape(*patches.shape[:-2], side, side, size, size).transpose(-3, -2)
    return laid.reshape(*patches.shape[:-2], config.picture_size, config.picture_size)


def ids_of(patches: Tensor, n_levels: int) -> Tensor:
    """Convert integers [patch, pixel] to ids [patch], with any number of leading axes."""
    return N_SPECIAL + (patches * _place_values(patches.shape[-1], n_levels, patches.device)).sum(dim=-1)


def levels_of(ids: Tensor, config: PictureConfig) -> Tensor:
    """Convert ids […] to levels […, pixel]; the inverse of ``ids_of``.

    A special token has no pixels, so all of its levels are 0.
    """
    digits = (ids - N_SPECIAL).clamp(min=0)[..., None] // _place_values(
        config.patch_size**2, config.n_levels, ids.device
    )
    return digits % config.n_levels


def _place_values(n_digits: int, base: int, device: torch.device) -> Tensor:
    """Return base^(n−1) … base, 1."""
    return base ** torch.arange(n_digits - 1, -1, -1, device=device)
