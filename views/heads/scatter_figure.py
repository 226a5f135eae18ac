"""Heads as points: two measures of each, its layer as the colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array, require_index, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _

_NAMED = 40  # more points than these have their names in the hover only


def head_scatter(
    across: Any,
    *,
    up: Any,
    labels: Sequence[str],
    layers: Sequence[int],
    roles: Sequence[str],
    axes: tuple[str, str],
    chosen: int,
) -> go.Figure:
    """``across``, ``up`` [head]: the two measures; ``labels``: "1.4" is head 4 of layer 1; ``axes``: what they are
    called; ``chosen``: the head that is ringed."""
    first = as_array(across, name="across", axes=("head",))
    second = as_array(up, name="up", axes=("head",), sizes={"head": len(first)})
    for name, values in (("labels", labels), ("layers", layers), ("roles", roles)):
        require_same_length(name, values, expected=len(first), of="heads")
    place = require_index(chosen, name="chosen", size=len(first))
    figure = Sheet()
    figure.scatter(
        x=first,
        y=second,
        mode="markers+text" if len(first) <= _NAMED else "markers",
        text=list(labels),
        textposition="top center",
        textfont={"size": style.TICK_SIZE},
        customdata=np.array([style.escape(role) for role in roles], dtype=object),
        marker={
            "size": 13,
            "color": np.asarray(layers),
            "colorscale": style.colour_scale(style.SEQUENTIAL),
            "colorbar": style.colour_bar(_("layer")) if max(layers) > min(layers) else None,
            "showscale": max(layers) > min(layers),
            "line": {
                "width": [4 if head == place else 1 for head in range(len(first))],
                "color": [style.CHOSEN if head == place else style.MASKED for head in range(len(first))],
            },
        },
        hovertemplate=style.hover(
            _("head {head}", head="%{text}"), "%{customdata}", f"{style.escape(axes[0])}: {style.exact('x')}",
            f"{style.escape(axes[1])}: {style.exact('y')}",
        ),
        showlegend=False,
    )  # fmt: skip
    style.finish(figure, height=430, top=32)
    figure.update_xaxes(title_text=style.escape(axes[0]))
    figure.update_yaxes(title_text=style.escape(axes[1]))
    figure.update_layout(clickmode="event+select", dragmode="select")
    return figure.drawn()
