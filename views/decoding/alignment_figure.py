"""Word alignment: how much each translated word looked at each word of the source."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, as_probabilities
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _
from transformer.text.message import N_

_MAX_NUMBERS = 14  # columns; with more there is no room for a number in a cell


def alignment_heatmap(
    weights: Any,
    *,
    target: Sequence[str],
    source: Sequence[str],
    best: Any | None = None,
    row: str = N_("target word"),
) -> go.Figure:
    """Target word × source word, weights 0…1, the source word with the largest weight of each row framed.

    ``weights``: [target word, source word]; ``best``: [target word], the index of the source word to frame; ``row``
    says what a row is.
    """
    sizes = {"target word": len(target), "source word": len(source)}
    values = as_probabilities(weights, name="weights", axes=("target word", "source word"), sizes=sizes)
    trace = parts.heatmap(
        values,
        hover=style.lines("%{y}", _("looks at {other}", other="%{x}"), _("weight")),
        bar=style.colour_bar(_("weight")),
        xgap=1,
        ygap=1,
    )
    alike = [[number(f"{weight:.3f}") for weight in weights_of_row] for weights_of_row in values]
    figure = Sheet(trace, *([parts.cell_texts(trace, texts=alike)] if len(source) <= _MAX_NUMBERS else []))
    style.finish(figure, height=style.rows_height(len(target), around=150), top=64)
    figure.update_xaxes(**style.label_axis(source, title=_("source word (looked at)")))
    figure.update_yaxes(**style.label_rows(target, title=style.escape(_(row))))
    if best is not None:
        for place, column in enumerate(as_array(best, name="best", axes=("target word",), sizes=sizes).astype(int)):
            box = {"x0": column - 0.48, "x1": column + 0.48, "y0": place - 0.46, "y1": place + 0.46}
            figure.add_shape(type="rect", **box, line={"color": style.CHOSEN, "width": 3})
    return figure.drawn()
