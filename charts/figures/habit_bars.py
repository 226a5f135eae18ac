"""Where the strongest weights of a head fall over many sentences, compared with chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_probabilities, require_same_length
from charts.toolkit.numbers import percent
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import say


def habit_bars(shares: Any, *, chances: Any, names: Sequence[str]) -> go.Figure:
    """Draw two bars per kind of position: its share of the rows, and that of a randomly drawn key.

    ``shares`` and ``chances`` are [kind]; ``names`` are those of the kinds.
    """
    values = as_probabilities(shares, name="shares", axes=("kind",))
    expected = as_probabilities(chances, name="chances", axes=("kind",), sizes={"kind": len(values)})
    require_same_length("names", names, expected=len(values), of="kinds")
    figure = Sheet()
    texts = [percent(float(value)) for value in values]
    for name, row, colour, text in (
        (say("names.this_head"), values, style.BAR, texts),
        (say("heads.chance"), expected, style.MASKED, None),
    ):
        bars = parts.bar_rows(row, hover=f"%{{y}}, {name}", colours=colour)
        figure.add_trace({**bars, "name": name, "text": text, "showlegend": True})
    style.finish(figure, height=34 * len(values) + 96, top=32)
    figure.update_layout(barmode="group", bargap=0.25, legend={"x": 1, "xanchor": "right", "y": 1.12})
    figure.update_yaxes(**style.label_rows(list(names), title=say("heads.target_axis")))
    figure.update_xaxes(title_text=say("heads.share_axis"), range=[0, 1.15 * max(values.max(), expected.max(), 0.1)])
    return figure.drawn()
