"""Figures of the Heads page: one head over many sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, as_probabilities, require_same_length
from charts.toolkit.numbers import percent
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import say

if TYPE_CHECKING:
    pass

_WIDE, _TALL = 0.84, 0.78  # shares of the space of one head
_NAMED = 40  # with more points than this, the names are only in the hover text


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


def strength_bars(shares: Any, *, edges: Any, name: str) -> go.Figure:
    """Draw the share of rows in which the measure ``name`` is in each of several equal intervals.

    ``shares`` are [interval], ``edges`` [interval + 1].
    """
    values = as_probabilities(shares, name="shares", axes=("interval",))
    edges = as_array(edges, name="edges", axes=("edge",), sizes={"edge": len(values) + 1})
    figure = Sheet()
    figure.bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=values,
        width=0.9 * np.diff(edges),
        marker={"color": style.BAR, "line": {"width": 0}},
        text=[percent(float(value)) if value else "" for value in values],
        textposition="outside",
        textfont={"size": style.TICK_SIZE},
        cliponaxis=False,
        hovertemplate=style.hover(f"{style.escape(name)} ≈ %{{x:.3g}}", style.exact("y")),
        showlegend=False,
    )
    style.finish(figure, height=300, top=32)
    figure.update_xaxes(title_text=style.escape(name), range=[float(edges[0]), float(edges[-1])])
    figure.update_yaxes(title_text=say("heads.share_axis"), range=[0, 1.15 * max(values.max(), 0.05)])
    return figure.drawn()
