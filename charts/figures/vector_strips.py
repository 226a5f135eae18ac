"""One token's vector before and after an addition and a norm: some numbers, and the spread of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet

READABLE = 5  # how many dimensions show their numbers
_LETTERS = 17  # of a line of a name on a phone
_ROW, _AROUND = 56, 84  # pixels per row, and around all rows
_BEYOND = 0.99  # share of the numbers within the scale; otherwise one huge number would hide the others
ON_A_PHONE = 2  # how many do so on a phone
_COLUMNS = ([0.0, 0.36], [0.39, 0.92], [0.93, 1.0])  # numbers, distribution of all of them, their spread
_NARROW = ([0.0, 0.34], [0.38, 0.84], [0.85, 1.0])


@dataclass(frozen=True)
class Strip:
    """One vector, [model], with the name of its row; ``normalized`` if a norm has just produced it.

    A normalized row is grey, since orange stands for positive numbers, and its name may have several lines. A vector
    that is only a copy (``is_copy``) is not one of those that are added, so its numbers get no cells.
    """

    name: str
    vector: np.ndarray
    normalized: bool = False
    is_copy: bool = False


def vector_strips(
    shown: Sequence[Strip],
    *,
    spread: str,
    root_mean_square: bool,
    numbers: str,
    all_of_it: str,
    few: int = READABLE,
) -> go.Figure:
    """Draw vectors one below the other: a few of their numbers, the distribution of all, and their spread.

    The first ``few`` dimensions have their numbers, on one diverging scale. Beside them every dimension is a tick at
    its value, with a band from mean − spread to mean + spread (from −RMS to RMS of a root mean square). Ticks beyond
    ±``limit_of`` are drawn at that limit. ``spread`` is the title of the last column, which may have several lines;
    ``numbers`` and ``all_of_it`` are the titles of the two axes.
    """
    vectors = [as_array(strip.vector, name=strip.name, axes=("dimension",)) for strip in shown]
    limit, width, rows = limit_of(vectors), len(vectors[0]), np.arange(len(vectors))
    few, whole, is_narrow = min(few, width), np.stack(vectors), few < READABLE
    centre = np.zeros(len(rows)) if root_mean_square else whole.mean(axis=1)
    size = np.sqrt(np.square(whole).mean(axis=1)) if root_mean_square else whole.std(axis=1)
    figure = Sheet(n_columns=3)
    copies = np.array([strip.is_copy for strip in shown])
    filled = np.where(copies[:, np.newaxis], np.nan, whole[:, :few])
    cells = parts.heatmap(filled, hover="%{y}<br>x<sub>%{x}</sub>", bar=None, limit=limit, y=rows, ygap=22, xgap=2)
    figure.add_trace(cells, col=1)
    texts = [[_two_decimals(value) for value in row] for row in whole[:, :few].tolist()]
    written = parts.cell_texts({**cells, "z": np.clip(filled, -limit, limit)}, texts=texts)
    figure.add_trace({**written, "textfont": {**written["textfont"], "size": style.TITLE_SIZE}}, col=1)
    for row in np.flatnonzero(copies).tolist():
        figure.scatter(
            x=np.arange(few),
            y=np.full(few, row),
            mode="text",
            text=texts[row],
            textfont={"size": style.TICK_SIZE, "color": style.NEUTRAL},
            customdata=whole[row, :few],
            hovertemplate=style.hover("x<sub>%{x}</sub>", style.exact("customdata")),
            col=1,
        )
    for row, strip in enumerate(shown):
        colour = style.NEUTRAL if strip.normalized else style.BAR
        band = np.clip([centre[row] - size[row], centre[row] + size[row]], -limit, limit).tolist()
        look: dict[str, Any] = {"fillcolor": colour, "opacity": 0.25, "layer": "below", "line_width": 0}
        figure.add_box(band, (row - 0.34, row + 0.34), col=2, **look)
        figure.scatter(
            x=np.clip(whole[row], -limit, limit),
            y=np.full(width, row),
            customdata=np.stack([np.arange(width), whole[row]], axis=1).astype(np.float32),
            mode="markers",
            marker={"symbol": "line-ns", "size": 24, "line": {"width": 1.5, "color": colour}},
            opacity=0.7,
            hovertemplate=style.hover("x<sub>%{customdata[0]}</sub>", style.exact("customdata[1]")),
            col=2,
        )
    figure.scatter(
        x=np.zeros(len(rows)),
        y=rows,
        mode="text",
        text=[f"<b>{text}</b>" for text in style.three_digits_alike(size)],
        textfont={"size": style.TITLE_SIZE + 2},
        customdata=size,
        hovertemplate=style.hover("%{y}", f"{' '.join(spread.split())} {style.exact('customdata')}"),
        col=3,
    )
    style.finish(figure, height=_ROW * len(rows) + _AROUND, top=40)
    for column, domain in enumerate(_NARROW if is_narrow else _COLUMNS, start=1):
        figure.update_xaxes(col=column, domain=domain, showgrid=False, zeroline=False)
    narrow = [_in_lines(strip.name) if is_narrow else strip.name.split("\n") for strip in shown]
    names = [style.lines(*map(style.escape, name)) for name in narrow]
    shared: dict[str, Any] = {"range": [len(rows) - 0.5, -0.5], "showgrid": False, "zeroline": False}
    figure.update_yaxes(**shared, tickmode="array", tickvals=rows.tolist(), ticktext=names)
    figure.update_yaxes(col=1, tickfont_size=style.TICK_SIZE if is_narrow else style.TITLE_SIZE)
    for column in (2, 3):
        figure.update_yaxes(col=column, showticklabels=False)
    figure.update_xaxes(col=1, title_text=numbers, tickmode="array", tickvals=list(range(few)), range=[-0.5, few - 0.5])
    figure.update_xaxes(col=2, title_text=all_of_it, range=[-1.02 * limit, 1.02 * limit], zeroline=True, nticks=7)
    heads: dict[str, Any] = {"tickvals": [0], "ticktext": [spread.replace("\n", "<br>")], "side": "top"}
    figure.update_xaxes(col=3, **heads, tickmode="array", range=[-0.5, 0.5], fixedrange=True)
    return figure.drawn()


def _in_lines(name: str) -> list[str]:
    """Return the name of a row in lines that are narrow enough for a phone."""
    return [line for part in name.split("\n") for line in wrap(part, _LETTERS, break_long_words=False)]


def _two_decimals(value: float) -> str:
    """Format one number of a sum with two decimals, so that all its numbers have equally many."""
    return number(f"{round(value, 2) + 0.0:.2f}") if abs(value) < 1000 else style.three_digits(value)


def limit_of(vectors: Sequence[np.ndarray]) -> float:
    """Return the limit of the scales, which covers 99 of 100 numbers."""
    sizes = np.abs(np.concatenate([np.asarray(vector) for vector in vectors]))
    limit = float(np.quantile(sizes, _BEYOND))
    return limit if limit > 0 else 1.0


def beyond(vectors: Sequence[np.ndarray]) -> int:
    """Return how many numbers exceed the scale."""
    return int((np.abs(np.concatenate([np.asarray(vector) for vector in vectors])) > limit_of(vectors)).sum())
