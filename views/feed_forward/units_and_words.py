"""The strongest units of one token: where in the sentence each fires, and beside it the words that it pushes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_index, require_same_length
from charts.toolkit.sheet import Sheet

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence

_ROW, _AROUND = 34, 142  # pixels
_FEW_TOKENS = 16  # with their numbers in the followed column
_LONGEST = 14  # signs of a word that are written; hovering says the rest
_SHARES = ([0.0, 0.54], [0.555, 1.0])


def units_and_words(
    hidden: Any,
    *,
    tokens: TokenSequence,
    followed: int,
    units: Sequence[int],
    words: Sequence[str],
    where: str,
    what: str,
    value: str,
    unit: str,
) -> go.Figure:
    """Rows of cells, unit × token, and one line of words for each unit.

    ``hidden``: [unit, token], the rows of ``units``, strongest for token ``followed`` first; ``words``: what is written
    beside each. ``where`` and ``what`` head the two halves, ``value`` names the colours, ``unit`` the rows (with
    ``{unit}``).
    """
    values = as_array(hidden, name="hidden", axes=("unit", "token"), sizes={"token": len(tokens)})
    require_same_length("units", units, expected=len(values), of="rows of hidden")
    require_same_length("words", words, expected=len(values), of="rows of hidden")
    require_index(followed, name="followed", size=len(tokens))
    names = [style.escape(unit.format(unit=number)) for number in units]
    largest, rows = style.symmetric_limit(values), np.arange(len(values))
    figure = Sheet(n_columns=2)
    cells = parts.heatmap(
        values,
        hover="%{y}<br>%{x}",
        bar=style.colour_bar(value, len=0.3, x=_SHARES[0][1]),
        limit=largest if (values < 0).any() else None,
        maximum=largest,
        xgap=1,
        ygap=4,
    )
    figure.add_trace(cells)
    if len(tokens) <= _FEW_TOKENS:
        texts = [["" if place != followed else text for place in range(len(tokens))] for text in
                 style.three_digits_alike(values[:, followed])]  # fmt: skip
        figure.add_trace(parts.cell_texts(cells, texts=texts))
    figure.scatter(
        x=np.zeros(len(values)),
        y=rows,
        mode="text",
        text=[f"<b>{style.escape(line)}</b>" for line in words],
        textposition="middle right",
        textfont={"size": style.TEXT_SIZE + 2},
        cliponaxis=False,
        hoverinfo="skip",
        col=2,
    )
    style.finish(figure, height=_ROW * len(values) + _AROUND, top=64)
    sides = {"x0": followed - 0.5, "x1": followed + 0.5, "y0": -0.5, "y1": len(values) - 0.5}
    figure.add_shape(type="rect", **sides, line={"color": style.CHOSEN, "width": 3})
    for column, head in enumerate((where, what), start=1):
        at = {"x": _SHARES[column - 1][0], "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper"}
        figure.add_annotation(text=f"<b>{style.escape(head)}</b>", **at, yanchor="bottom", font_size=style.TITLE_SIZE)
    figure.update_xaxes(**style.token_axis(tokens, title=""), domain=_SHARES[0], col=1)
    figure.update_xaxes(col=2, domain=_SHARES[1], range=[0, 1], visible=False, fixedrange=True)
    shared = {"range": [len(values) - 0.5, -0.5], "showgrid": False, "zeroline": False, "fixedrange": True}
    figure.update_yaxes(**shared, tickmode="array", tickvals=rows.tolist(), ticktext=names)
    figure.update_yaxes(col=2, showticklabels=False)
    return figure.drawn()


def line_of(pieces: Sequence[str]) -> str:
    """The words of one unit in a row; long ones are cut."""
    return "   ".join(piece if len(piece) <= _LONGEST else f"{piece[: _LONGEST - 1]}…" for piece in pieces)
