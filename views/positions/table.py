"""Which position scheme is looked at and whose it is, and its table of encodings."""

from dataclasses import dataclass

import numpy as np

from transformer import Checkpoint
from transformer.layers import positional_encodings
from ui.shell.page import Page


@dataclass(frozen=True)
class Shown:
    """The scheme that is looked at, and the checkpoint whose numbers these are: the focused one, another one that
    has this scheme, or ``None`` where the numbers come from the formula alone."""

    scheme: str
    checkpoint: Checkpoint | None
    own: bool


def table_of(p: Page, shown: Shown, n_positions: int) -> np.ndarray:
    """The rows that are added, [position, model]: of the model itself, of another checkpoint, or by the formula."""
    if shown.checkpoint is None:
        return positional_encodings.sinusoidal_table(n_positions, even(p.checkpoint.config.d_model))
    stack = p.focus.stack if shown.own else "encoder" if shown.checkpoint.config.has_encoder else "decoder"
    return positional_encodings.added_encoding(shown.checkpoint.model, stack, n_positions)


def even(width: int) -> int:
    return width + width % 2
