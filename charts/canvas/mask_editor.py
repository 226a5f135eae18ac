"""Data of the mask editor in the browser."""

from collections.abc import Sequence

import numpy as np

from charts.canvas.attention_maps import attention_map
from charts.canvas.figure import CanvasFigure
from charts.toolkit.payload_bytes import mask_bits
from charts.toolkit.words import localize
from transformer.runs.attention_view import AttentionView

EARLIER_TITLE = "rows: the output before the mask"


def mask_editor(
    view: AttentionView,
    *,
    head: int,
    own: np.ndarray,
    shifted_labels: Sequence[str] | None = None,
    of_earlier_output: bool = False,
    height: int | None = None,
) -> CanvasFigure:
    """Draw one head as a heatmap whose mask is painted with the mouse.

    A click or a drag blocks or allows cells. ``view`` holds the current mask, ``own`` [query, key] the model's; cells
    that differ are framed. ``shifted_labels`` is as in ``attention_map``. ``of_earlier_output`` says that the rows are
    an output that the model no longer generates under the mask.

    Raises:
        ValueError: If the two masks differ in shape.
    """
    mask = np.asarray(own, dtype=bool)
    if mask.shape != view.allowed.shape:
        raise ValueError(f"own has shape {mask.shape} but the mask of {view.name} has {view.allowed.shape}")
    drawn = attention_map(view, head=head, shifted_labels=shifted_labels, height=height)
    rows = {"row_title": localize(EARLIER_TITLE)} if of_earlier_output else {}
    return CanvasFigure({**drawn.metadata, **rows, "kind": "mask"}, {**drawn.arrays, "own": mask_bits(mask)})
