"""One token's vector as strips of coloured cells: the additions and norms that it goes through, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array
from charts.toolkit.sheet import Sheet

READABLE = 8  # dimensions with their numbers
_ROW, _AROUND = 32, 104  # pixels per row, and around all rows
_BEYOND = 0.99  # share of all numbers whose colours differ; a single huge one would make all others white
_COLUMNS = ([0.0, 0.50], [0.52, 0.84], [0.845, 1.0])  # numbers, all dimensions, mean and spread


@dataclass(frozen=True)
class Strip:
    """One vector, [model], with the name of its row."""

    name: str
    vector: np.ndarray


@dataclass(frozen=True)
class Part:
    """Strips that belong together, below one title."""

    title: str
    strips: tuple[Strip, ...]


def vector_strips(
    shown: Sequence[Part], *, mean: str, spread: str, root_mean_square: bool, numbers: str, all_of_it: str, bar: str
) -> go.Figure:
    """Draw vectors as cells on one diverging scale: numbers of some dimensions, all dimensions, statistics.

    The first ``READABLE`` dimensions have their numbers; then come all of them, and the mean and the standard deviation
    (or root mean square) of each row. ``mean`` and ``spread`` are titles of the last two columns, ``numbers`` and
    ``all_of_it`` those of the two axes, ``bar`` that of the colours. The colour of ±``limit_of`` also stands for
    everything beyond it.
    """
    vectors = [as_array(strip.vector, name=strip.name, axes=("dimension",)) for part in shown for strip in part.strips]
    limit, width = limit_of(vectors), len(vectors[0])
    few = min(READABLE, width)
    texts = style.three_digits_alike(np.concatenate([vector[:few] for vector in vectors]))
    whole = np.stack(vectors)
    size = np.sqrt(np.square(whole).mean(axis=1)) if root_mean_square else whole.std(axis=1)
    both = {mean: whole.mean(axis=1), spread: size}  # [row] each
    figure = Sheet(n_columns=3)
    places, names, row, drawn = [], [], 0, 0
    for part in shown:
        title = {"text": f"<b>{style.escape(part.title)}</b>", "x": 0, "y": row, "xref": "paper", "xanchor": "left"}
        figure.add_annotation(**title, yref="y", font_size=style.TITLE_SIZE)
        rows = np.arange(row + 1, row + 1 + len(part.strips))
        block = whole[drawn : drawn + len(part.strips)]
        for column, values in ((1, block[:, :few]), (2, block)):
            cells = parts.heatmap(
                values,
                hover="%{y}<br>x<sub>%{x}</sub>",
                bar=style.colour_bar(bar, len=0.32, x=0.84) if column == 2 and not row else None,
                limit=limit,
                y=rows,
                ygap=4,
                xgap=2 if column == 1 else 0,
            )
            figure.add_trace(cells, col=column)
            if column == 1:
                own = [texts[few * at : few * (at + 1)] for at in range(drawn, drawn + len(part.strips))]
                written = parts.cell_texts({**cells, "z": np.clip(values, -limit, limit)}, texts=own)
                figure.add_trace({**written, "y": [rows[place] for place in written["y"]]}, col=1)
        for place, (name, column) in enumerate(both.items()):
            own = slice(drawn, drawn + len(rows))
            figure.scatter(
                x=np.full(len(rows), place),
                y=rows,
                mode="text",
                text=style.three_digits_alike(_no_dust(value, limit) for value in column)[own],
                textfont={"size": style.TEXT_SIZE + 1},
                customdata=column[own],
                hovertemplate=style.hover("%{y}", f"{name} {style.exact('customdata')}"),
                col=3,
            )
        places += rows.tolist()
        names += [strip.name for strip in part.strips]
        row, drawn = row + 1 + len(part.strips), drawn + len(part.strips)
    style.finish(figure, height=_ROW * row + _AROUND, top=52)
    for column, domain in enumerate(_COLUMNS, start=1):
        figure.update_xaxes(col=column, domain=domain, showgrid=False, zeroline=False)
    shared = {"range": [row - 0.5, -0.5], "showgrid": False, "zeroline": False}
    figure.update_yaxes(**shared, tickmode="array", tickvals=places, ticktext=[style.escape(name) for name in names])
    figure.update_yaxes(col=1, tickfont_size=style.TEXT_SIZE + 1)
    for column in (2, 3):
        figure.update_yaxes(col=column, showticklabels=False)
    figure.update_xaxes(col=1, title_text=numbers, tickmode="array", tickvals=list(range(few)), range=[-0.5, few - 0.5])
    figure.update_xaxes(col=2, title_text=all_of_it, range=[-0.5, width - 0.5], nticks=5)
    heads = {"tickmode": "array", "tickvals": [0, 1], "ticktext": [mean, spread], "side": "top"}
    figure.update_xaxes(col=3, **heads, range=[-0.5, 1.5], fixedrange=True)
    return figure.drawn()


def limit_of(vectors: Sequence[np.ndarray]) -> float:
    """Return the limit of the colour scale, which 99 of 100 numbers stay below."""
    sizes = np.abs(np.concatenate([np.asarray(vector) for vector in vectors]))
    limit = float(np.quantile(sizes, _BEYOND))
    return limit if limit > 0 else 1.0


def beyond(vectors: Sequence[np.ndarray]) -> int:
    """How many numbers are larger than the colours reach."""
    return int((np.abs(np.concatenate([np.asarray(vector) for vector in vectors])) > limit_of(vectors)).sum())


def _no_dust(value: float, limit: float) -> float:
    """0 for what rounding leaves of a mean of 0."""
    return 0.0 if abs(value) < 1e-6 * limit else float(value)
