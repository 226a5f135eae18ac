"""What a head does on the whole: the places of its strongest weights beside chance, and how strong these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array, as_probabilities, require_same_length
from charts.toolkit.numbers import percent
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _


def habit_bars(shares: Any, *, chances: Any, names: Sequence[str]) -> go.Figure:
    """Two bars for each kind of place: ``shares`` [kind] of the rows, and ``chances`` [kind], what a key drawn at
    random would have; ``names`` of the kinds."""
    values = as_probabilities(shares, name="shares", axes=("kind",))
    expected = as_probabilities(chances, name="chances", axes=("kind",), sizes={"kind": len(values)})
    require_same_length("names", names, expected=len(values), of="kinds")
    figure = Sheet()
    for name, bars, colour in ((_("this head"), values, style.BAR), (_("by chance"), expected, style.MASKED)):
        figure.bar(
            x=bars,
            y=np.arange(len(bars)),
            orientation="h",
            name=name,
            marker={"color": colour, "line": {"width": 0}},
            text=[percent(float(value)) for value in values] if bars is values else None,
            textposition="outside",
            textfont={"size": style.TICK_SIZE},
            cliponaxis=False,
            hovertemplate=style.hover(f"%{{y}}, {name}", style.exact("x")),
            showlegend=True,
        )
    style.finish(figure, height=34 * len(values) + 96, top=32)
    figure.update_layout(barmode="group", bargap=0.25, legend={"x": 1, "xanchor": "right", "y": 1.12})
    figure.update_yaxes(**style.label_rows(list(names), title=_("what it looks at")))
    figure.update_xaxes(title_text=_("share of the rows"), range=[0, 1.15 * max(values.max(), expected.max(), 0.1)])
    return figure.drawn()


def strength_bars(shares: Any, *, edges: Any, name: str) -> go.Figure:
    """``shares`` [interval] of the rows in which a measure called ``name`` lies in each of the equal intervals between
    ``edges`` [interval + 1]."""
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
    figure.update_yaxes(title_text=_("share of the rows"), range=[0, 1.15 * max(values.max(), 0.05)])
    return figure.drawn()
