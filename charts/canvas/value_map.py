"""Any labelled matrix for the attention canvas: attention weights, scores, differences."""

from collections.abc import Sequence

import numpy as np

from charts.canvas.figure import CanvasFigure
from charts.toolkit.payload_bytes import TOLERANCE, mask_bits, whole_numbers
from charts.toolkit.words import _

SCALES = ("sequential", "diverging")


def value_map(
    values: np.ndarray,
    *,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    row_title: str = "row",
    column_title: str = "column",
    scale: str = "diverging",
    allowed: np.ndarray | None = None,
    selected: tuple[int, int] | None = None,
    limit: float | None = None,
    title: str = "values",
    value_name: str = "value",
    phrase: Sequence[str] = ("", " × "),
    height: int | None = None,
    chosen_row: int | None = None,
    breaks: Sequence[int] = (),
    column_breaks: Sequence[int] = (),
    crossed: Sequence[tuple[int, int]] = (),
    masked_text: str = "",
    follow_pointer: bool = False,
) -> CanvasFigure:
    """Any labelled matrix as a heatmap: ``values`` [row, column], ``allowed`` [row, column] (``False`` = hatched).

    ``scale`` is "sequential" (0 … limit) or "diverging" (−limit … +limit, centred on 0). Without ``limit`` it is the
    largest absolute value among the allowed cells. ``value_name`` says in legend and tooltip what the numbers are;
    ``phrase`` holds the words before the row's label and between the two labels in the tooltip, and those after a
    column's label before the rows with its largest values, if any but those. ``selected`` is
    outlined, the label of ``chosen_row`` marked. ``height`` limits the picture, in pixels. ``breaks`` and
    ``column_breaks``: rows and columns before which another block begins. ``crossed``: cells (row, column) that are
    struck out. ``masked_text``: what cells that are not ``allowed`` mean, if not a mask. ``follow_pointer``: on a page,
    while Shift is held, the colours of a sequential map follow the value that is pointed at, which gets the middle of
    the scale; in a file they never do.

    Raises ``ValueError`` when labels, mask, selection or scale do not fit the values.
    """
    values = np.asarray(values)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"{title}: values have shape {values.shape}; a map needs [row, column], neither of them empty")
    rows, columns = values.shape
    for side, labels, size in (("row", row_labels, rows), ("column", column_labels, columns)):
        if len(labels) != size:
            raise ValueError(f"{title}: {len(labels)} {side} labels for {size} {side}s; give one label per {side}")
    if scale not in SCALES:
        raise ValueError(f"{title}: scale {scale!r} is unknown; choose one of {', '.join(SCALES)}")
    mask = np.ones(values.shape, dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
    if mask.shape != values.shape:
        raise ValueError(f"{title}: allowed has shape {mask.shape} but the values have {values.shape}; they must match")
    _check_cell(selected, rows, columns, title)
    if chosen_row is not None and not 0 <= chosen_row < rows:
        raise ValueError(f"{title}: chosen_row is {chosen_row}, but the rows are 0 to {rows - 1}")
    seen = values[mask & np.isfinite(values)]
    if scale == "sequential" and seen.size and float(seen.min()) < -TOLERANCE:
        raise ValueError(
            f"{title}: the smallest value is {float(seen.min()):.3g}; signed values need scale='diverging'"
        )
    reach = float(np.abs(seen).max()) if seen.size else 0.0
    limit = reach if limit is None else limit
    if not np.isfinite(limit) or limit < reach - TOLERANCE:
        raise ValueError(f"{title}: limit is {limit:.6g}, but a value reaches {reach:.6g}; its colour would be clipped")
    metadata = {
        "kind": "map",
        "title": title,
        "rows": list(row_labels),
        "columns": list(column_labels),
        "row_title": _(row_title),
        "column_title": _(column_title),
        "scale": scale,
        "limit": limit or 1.0,
        "value_name": value_name,
        "phrase": [_(words) for words in phrase],
        "selected": whole_numbers(selected),
        "chosen_row": None if chosen_row is None else int(chosen_row),
        "height": height,
        **({"breaks": [int(row) for row in breaks]} if breaks else {}),
        **({"column_breaks": [int(column) for column in column_breaks]} if column_breaks else {}),
        **({"crossed": [whole_numbers(cell) for cell in crossed]} if crossed else {}),
        **({"masked_text": masked_text} if masked_text else {}),
        **({"follows": True} if follow_pointer and scale == "sequential" else {}),
    }
    # What a masked cell would have scored may be −∞; it is hatched, never read, so it need not travel.
    exact = np.where(mask, values, 0.0).astype(np.float32)
    return CanvasFigure(metadata, {"values": exact, "allowed": mask_bits(mask)})


def _check_cell(cell: tuple[int, int] | None, rows: int, columns: int, title: str) -> None:
    if cell is not None and not (0 <= cell[0] < rows and 0 <= cell[1] < columns):
        raise ValueError(f"{title}: selected is {tuple(cell)}, outside of {rows} rows and {columns} columns")
