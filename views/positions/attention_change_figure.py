"""The attention of one token before and after a change of positions: two rows of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_probabilities
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet

if TYPE_CHECKING:
    from transformer.text.tokens import Token

_MAX_NUMBERS = 16


def attention_change(
    before: Any, *, after: Any, tokens: Sequence[Token], rows: tuple[str, str], bar: str, positions: Sequence[str]
) -> go.Figure:
    """Draw the weights of one token in one head as two rows.

    Args:
        before: The weights with the original positions, [token].
        after: The weights with other positions, [token].
        tokens: The tokens that are attended to.
        rows: The names of the two rows.
        bar: The title of the colour bar.
        positions: The position of each token, written below it.
    """
    axes, sizes = ("token",), {"token": len(tokens)}
    both = np.stack([as_probabilities(one, name="weights", axes=axes, sizes=sizes) for one in (before, after)])
    figure, few = Sheet(), len(tokens) <= _MAX_NUMBERS
    # A colour bar would add nothing if every cell shows its number.
    cells = parts.heatmap(
        both, hover="%{y}<br>%{x}", bar=None if few else style.colour_bar(bar, len=0.3), ygap=4, xgap=2
    )
    figure.add_trace(cells)
    if few:
        figure.add_trace(parts.cell_texts(cells, texts=[[number(f"{value:.2f}") for value in row] for row in both]))
    style.finish(figure, height=130 if few else 176, top=4 if few else 54)
    figure.update_xaxes(**style.label_axis([token.display for token in tokens], title=""))
    if few:
        names = zip((style.escape(token.display) for token in tokens), positions, strict=True)
        figure.update_xaxes(ticktext=[style.lines(name, position) for name, position in names])
    figure.update_yaxes(**style.label_rows(rows, title=""))
    figure.update_yaxes(tickfont_size=style.TEXT_SIZE, fixedrange=True)
    return figure.drawn()
