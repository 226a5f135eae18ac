"""Any labelled matrix on the canvas: attention weights, scores, differences."""

from collections.abc import Sequence

import numpy as np

from charts.canvas.figure import CanvasFigure
from charts.toolkit.payload_bytes import TOLERANCE, mask_bits
from charts.toolkit.words import localize

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
    outlined: np.ndarray | None = None,
    numbered: Sequence[tuple[int, int]] | None = None,
    whole: bool = False,
    legend: str = "",
    masked_text: str = "",
    follow_pointer: bool = False,
) -> CanvasFigure:
    """Draw a labelled matrix ``values`` [row, column] as a heatmap.

    Args:
        values: [row, column].
        row_labels: Labels of the rows.
        title: Title of the figure.
        column_labels: Labels of the columns.
        row_title: Title of the rows.
        column_title: Title of the columns.
        scale: "sequential" (0 … limit) or "diverging" (−limit … +limit, centred on 0).
        allowed: [row, column]; ``False`` cells are hatched.
        selected: A cell with an outline.
        limit: End of the scale; by default the largest absolute value among the allowed cells.
        value_name: Meaning of the numbers, for legend and tooltip.
        phrase: Words of the tooltip: those before the row's label, those between the two labels and, if they differ,
            those between a column's label and the rows with its largest values.
        chosen_row: Row with a marked label.
        height: Largest height in pixels.
        breaks: Rows before which another block begins.
        column_breaks: Columns before which another block begins.
        crossed: Cells (row, column) that are crossed out.
        outlined: [row, column]; a line is drawn around the ``True`` cells.
        numbered: The cells (row, column) whose number is written in them; by default all.
        whole: Whether the numbers in the cells are rounded to whole ones, such as percentages.
        legend: Meaning of the colours beside the colour bar; by default ``value_name``.
        masked_text: Meaning of cells that are not ``allowed``, if it is not a mask.
        follow_pointer: On a page, while Shift is held, the colours of a sequential map adapt to the value under the
            pointer, which gets the middle of the scale; in a file they never do.

    Raises:
        ValueError: If labels, mask, selection or scale do not fit the values.
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
    if outlined is not None and np.shape(outlined) != values.shape:
        raise ValueError(
            f"{title}: outlined has shape {np.shape(outlined)} but the values have {values.shape}; they must match"
        )
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
        "row_title": localize(row_title),
        "column_title": localize(column_title),
        "scale": scale,
        "limit": limit or 1.0,
        "value_name": value_name,
        "phrase": [localize(words) for words in phrase],
        "selected": selected,
        "chosen_row": chosen_row,
        "height": height,
        "breaks": list(breaks),
        "column_breaks": list(column_breaks),
        "crossed": list(crossed),
        "numbered": None if numbered is None else list(numbered),
        "whole": whole,
        "legend": legend or value_name,
        "masked_text": masked_text,
        "follows": follow_pointer and scale == "sequential",
    }
    # The score of a masked cell may be −∞; it is hatched and never read, so it is not sent.
    exact = np.where(mask, values, 0.0).astype(np.float32)
    border = {} if outlined is None else {"outlined": mask_bits(np.asarray(outlined, dtype=bool))}
    return CanvasFigure(metadata, {"values": exact, "allowed": mask_bits(mask), **border})


def _check_cell(cell: tuple[int, int] | None, rows: int, columns: int, title: str) -> None:
    if cell is not None and not (0 <= cell[0] < rows and 0 <= cell[1] < columns):
        raise ValueError(f"{title}: selected is {tuple(cell)}, outside of {rows} rows and {columns} columns")
