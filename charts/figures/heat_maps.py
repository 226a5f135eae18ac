"""Heat maps with labelled rows and columns: one alone, or several below each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.axes import Axis
from charts.toolkit.checks import as_array, as_probabilities, require_same_length
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet, stack_panels, stacked_height
from charts.toolkit.words import say

FEW = 16  # columns of weights with a number in every cell


def token_cell() -> str:
    """Return the hover text of one number of a token's vector: token, position, dimension."""
    return style.lines(say("token_position", token="%{y}", place="%{y:d}"), say("dimension", dimension="%{x}"))


def heat_map(
    values: Any,
    *,
    rows: Axis,
    columns: Axis,
    hover: str,
    value: str,
    signed: bool = True,
    height: float = 0,
    limit: float | None = None,
    gap: int = 0,
    texts: Sequence[Sequence[str]] = (),
    frames: Sequence[tuple[int, int | None]] = (),
    is_square: bool = False,
    end: tuple[int, str] | None = None,
) -> go.Figure:
    """Draw numbers, [row, column], in colours that diverge from 0 or, if they are not signed, begin there.

    Args:
        values: The numbers; a cell of NaN stays empty.
        rows: What the rows are.
        columns: What the columns are.
        hover: Text above the exact value, with ``%{x}`` and ``%{y}``.
        value: Title of the colour bar.
        signed: Whether numbers can be negative.
        height: Pixels of the whole figure, by default as the rows need.
        limit: End of the scale, by default the largest absolute value.
        gap: Pixels between two rows, and between two columns with texts.
        texts: What is written in the cells, [row][column].
        frames: Row and column of each framed cell, or the row alone.
        is_square: Whether a cell is as high as wide.
        end: A row above which a line is drawn, with the text below it.

    Raises:
        ValueError: If there is not one label per row and column.
    """
    drawn = as_array(values, name="values", axes=("row", "column"), signed=signed)
    limit = style.symmetric_limit(drawn) if limit is None else limit
    scale: dict[str, Any] = {"limit": limit} if signed else {"maximum": limit}
    cells = parts.heatmap(drawn, hover=hover, bar=style.colour_bar(value), ygap=gap, xgap=gap if texts else 0, **scale)
    figure = Sheet(cells, *([parts.cell_texts(cells, texts=texts)] if texts else []))
    style.finish(figure, height=height or style.rows_height(len(drawn)), top=64)
    _name_axes(figure, drawn.shape, rows, columns)
    if is_square:
        figure.update_xaxes(constrain="domain")
        figure.update_yaxes(constrain="domain", scaleanchor="x")
    if end is not None:
        _draw_end(figure, *end)
    for row, column in frames:
        sides = (-0.5, drawn.shape[1] - 0.5) if column is None else (column - 0.48, column + 0.48)
        figure.add_box(sides, (row - 0.47, row + 0.47), line={"color": style.CHOSEN, "width": 3})
    return figure.drawn()


def weight_rows(
    values: Any, *, rows: Sequence[str], columns: Sequence[str], below: Sequence[str], value: str
) -> go.Figure:
    """Draw a few rows of weights from 0 to 1, [row, column].

    Up to ``FEW`` columns show their numbers and, below each label, a second label from ``below``.
    """
    require_same_length("below", below, expected=len(columns), of="columns")
    drawn = as_probabilities(values, name="weights", axes=("row", "column"), sizes={"column": len(columns)})
    few = len(columns) <= FEW
    # A colour bar would add nothing if every cell shows its number.
    bar = None if few else style.colour_bar(value, len=0.3)
    cells = parts.heatmap(drawn, hover=style.lines("%{y}", "%{x}"), bar=bar, ygap=4, xgap=2)
    figure = Sheet(cells)
    if few:
        texts = [[number(f"{weight:.2f}") for weight in row] for row in drawn]
        figure.add_trace(parts.cell_texts(cells, texts=texts))
    style.finish(figure, height=130 if few else 194, top=4 if few else 72)
    _name_axes(figure, drawn.shape, Axis("", rows), Axis("", columns))
    if few:
        both = zip(map(style.escape, columns), map(style.escape, below), strict=True)
        figure.update_xaxes(ticktext=[style.lines(*names) for names in both])
    figure.update_yaxes(tickfont_size=style.TEXT_SIZE, fixedrange=True)
    return figure.drawn()


@dataclass(frozen=True)
class HeatMap:
    """One of several heat maps.

    Attributes:
        name: What is written above it.
        values: Its numbers, [row, column].
        hover: Text above the exact value, with ``%{x}`` and ``%{y}``.
        value: Title of its colour bar.
        signed: Whether numbers can be negative.
        limit: End of its scale, by default the largest absolute value.
    """

    name: str
    values: Any
    hover: str
    value: str = ""
    signed: bool = True
    limit: float | None = None


def heat_maps(
    panels: Sequence[HeatMap],
    *,
    rows: Axis,
    columns: Axis,
    row_height: float = 0,
    shared: bool = False,
    numbers: int = 0,
) -> go.Figure:
    """Draw arrays of one shape below each other, each under its name.

    Args:
        panels: The arrays.
        rows: What the rows of each are.
        columns: What the columns are.
        row_height: Pixels of a row, by default as many as fit on one or two screens.
        shared: Whether they share one scale.
        numbers: Columns up to which every cell shows its number.
    """
    n_rows, n_columns = np.shape(panels[0].values)
    sizes, gap = {"row": n_rows, "column": n_columns}, 72.0 - 36 * shared  # pixels, for a colour bar above each map
    arrays = [as_array(each.values, name=each.name, axes=("row", "column"), sizes=sizes) for each in panels]
    usual = min(24.0, max(14.0, 110 / n_rows))
    heights = [row_height * n_rows or min(usual * n_rows, usual * style.MAX_ROWS / 2)] * len(panels)
    figure = stack_panels([each.name for each in panels], heights=heights, gap=gap)
    for place, (each, drawn) in enumerate(zip(panels, arrays, strict=True)):
        limit = each.limit or style.symmetric_limit(*(arrays if shared else [drawn]))
        scale: dict[str, Any] = {"limit": limit} if each.signed else {"maximum": limit}
        top = 0.999 - place * (heights[0] + gap) / stacked_height(heights, around=0, gap=gap)
        bar = style.colour_bar(each.value, ypad=style.ABOVE_NAMES, y=top, len=0.45 if each.value else 0.3)
        cells = parts.heatmap(
            drawn,
            hover=each.hover,
            bar=None if shared and place else bar,
            ygap=1,
            xgap=int(bool(columns.labels)),
            **scale,
        )
        figure.add_trace(cells, row=place + 1)
        if n_columns <= numbers:
            figure.add_trace(parts.cell_texts(cells), row=place + 1)
    style.finish(figure, height=stacked_height(heights, around=140, gap=gap), top=84 if panels[0].value else 64)
    _name_axes(figure, (n_rows, n_columns), Axis("", rows.labels), Axis("", columns.labels))
    figure.update_yaxes(title_text=rows.title, row=(len(panels) + 1) // 2)
    figure.update_xaxes(title_text=columns.title, row=len(panels))
    return figure.drawn()


def _name_axes(figure: Sheet, shape: Sequence[int], rows: Axis, columns: Axis) -> None:
    figure.update_yaxes(**rows.down(shape[0]))
    figure.update_xaxes(**columns.across(shape[1]))


def _draw_end(figure: Sheet, row: int, text: str) -> None:
    for line in ({"color": "#111111", "width": 4}, {"color": "#FFFFFF", "width": 2, "dash": "dash"}):
        figure.add_hline(y=row - 0.5, line=line)
    if text:
        figure.add_annotation(
            text=text, font={"color": "#FFFFFF", "size": style.TEXT_SIZE}, bgcolor="rgba(0,0,0,0.75)",
            x=1, y=row - 0.5, xref="x domain", yref="y", xanchor="right", yanchor="top",
        )  # fmt: skip
