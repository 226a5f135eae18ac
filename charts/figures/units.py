"""Hidden units over the tokens, one strip per unit below the words that it promotes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_index, require_same_length
from charts.toolkit.sheet import Sheet

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence

_STRIP, _LINE, _AROUND = 44, 24, 158  # pixels: a strip with the line above it, that line, and all around the strips
_FEW_TOKENS = 16  # the most tokens for which the focused column shows numbers
_LONGEST = 14  # characters of a word that are shown; the hover has all


def units_and_words(
    hidden: Any,
    *,
    tokens: TokenSequence,
    followed: int,
    units: Sequence[str],
    words: Sequence[str],
    value: str,
) -> go.Figure:
    """Draw a strip of cells per unit, one cell per token, below the unit's words and its name.

    ``hidden``: [unit, token], the rows of ``units``; ``followed``: the token whose cells are framed; ``words``: the
    beginning of each line. ``value`` names the colours.
    """
    values = as_array(hidden, name="hidden", axes=("unit", "token"), sizes={"token": len(tokens)})
    for name, given in (("units", units), ("words", words)):
        require_same_length(name, given, expected=len(values), of="rows of hidden")
    require_index(followed, name="followed", size=len(tokens))
    largest = style.symmetric_limit(values)
    scale: dict[str, Any] = {"limit": largest if (values < 0).any() else None, "maximum": largest}
    cells = parts.heatmap(values, hover="%{y}<br>%{x}", bar=style.colour_bar(value), **scale, xgap=1, ygap=_LINE)
    figure = Sheet(cells)
    if len(tokens) <= _FEW_TOKENS:
        written = style.three_digits_alike(values[:, followed])
        texts = [[text if place == followed else "" for place in range(len(tokens))] for text in written]
        figure.add_trace(parts.cell_texts(cells, texts=texts))
    style.finish(figure, height=_STRIP * len(values) + _AROUND, top=80)  # the toolbar of the figure is above the scale
    half = 0.5 * (1 - _LINE / _STRIP)  # of a strip, in rows
    for row, (unit, line) in enumerate(zip(units, words, strict=True)):
        text = f"<b>{style.escape(line)}</b>  ({style.escape(unit)})"
        at = {"x": 0, "xref": "paper", "xanchor": "left", "y": row - half, "yanchor": "bottom"}
        figure.add_annotation(text=text, **at, font_size=style.TEXT_SIZE + 1)
        frame = {"color": style.CHOSEN, "width": 3}
        figure.add_box((followed - 0.5, followed + 0.5), (row - half, row + half), line=frame)
    figure.update_xaxes(**style.label_axis(tokens.displays, title=""))
    rows: dict[str, Any] = {
        "range": [len(values) - 0.5, -0.62],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }
    names = [style.escape(unit) for unit in units]
    figure.update_yaxes(
        **rows, tickmode="array", tickvals=list(range(len(values))), ticktext=names, showticklabels=False
    )
    figure.update_layout(margin_l=8)
    return figure.drawn()


def line_of(pieces: Sequence[str]) -> str:
    """Return the words of one unit in a row; long ones are cut."""
    return ", ".join(style.shorten(piece, _LONGEST) for piece in pieces)
