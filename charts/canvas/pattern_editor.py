"""Data of the pattern editor in the browser."""

from collections.abc import Sequence

import numpy as np

from charts.canvas.attention_maps import attention_map
from charts.canvas.figure import CanvasFigure
from charts.toolkit.payload_bytes import mask_bits
from transformer.runs.attention_view import AttentionView


def pattern_editor(
    view: AttentionView,
    *,
    head: int,
    pattern: np.ndarray,
    shifted_labels: Sequence[str] | None = None,
    height: int | None = None,
) -> CanvasFigure:
    """Draw one head as a heatmap on which a pattern is painted with the mouse.

    A click or a drag paints or erases cells of ``pattern`` [query, key]; cells outside of it are pale. Masked cells
    cannot be painted. ``shifted_labels`` is as in ``attention_map``.

    Raises:
        ValueError: If the pattern and the mask differ in shape.
    """
    painted = np.asarray(pattern, dtype=bool)
    if painted.shape != view.allowed.shape:
        raise ValueError(f"pattern has shape {painted.shape} but the mask of {view.name} has {view.allowed.shape}")
    drawn = attention_map(view, head=head, shifted_labels=shifted_labels, height=height)
    arrays = {**drawn.arrays, "painted": mask_bits(painted & view.allowed)}
    return CanvasFigure({**drawn.metadata, "kind": "pattern"}, arrays)
