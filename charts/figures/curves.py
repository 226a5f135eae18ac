"""Curves over one axis, each with a hover text, and with dots at named positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array
from charts.toolkit.sheet import Sheet

_DASHES = ("solid", "dash", "dot")


@dataclass(frozen=True)
class Curve:
    """One curve.

    Attributes:
        name: Its name in the legend.
        values: Its numbers, [position]; it may end before the last position.
        hover: Lines of its hover text, with ``%{x}``, ``%{y}`` and ``%{customdata}``.
        detail: A second number per position for the hover text, ``customdata``.
        texts: A text per position for the hover text, ``%{text}``.
        points: Names of the first positions, which get dots.
        points_hover: Lines of a dot's hover text, in which ``%{text}`` is the dot's name.
        colour: By default that of its number in the figure.
        dash: By default "solid", and others for curves whose colour repeats.
        width: Pixels of the line.
        marker: Pixels of a dot at every position, 0 for none.
    """

    name: str
    values: Any
    hover: Sequence[str]
    detail: Any = None
    texts: Sequence[str] = ()
    points: Sequence[str] = ()
    points_hover: Sequence[str] = ()
    colour: str = ""
    dash: str = ""
    width: float = 2.5
    marker: float = 0


def curves(
    drawn: Sequence[Curve],
    *,
    x: Sequence[float],
    across: str,
    up: str,
    height: float = 400,
    xaxis: Mapping[str, Any] | None = None,
    yaxis: Mapping[str, Any] | None = None,
    first_on_top: bool = False,
) -> go.Figure:
    """Draw curves over the positions ``x``; ``across`` and ``up`` are the titles of the axes.

    Curves with the same name and colour share one entry in the legend.

    ``xaxis`` and ``yaxis`` are further settings of the axes; with ``first_on_top``, the first curve covers the others.

    Raises:
        ValueError: If there is no curve, or one has more numbers than there are positions.
    """
    if not drawn:
        raise ValueError("there is no curve to draw; give at least one")
    figure, places, listed = Sheet(), np.asarray(x), set()
    numbered = list(enumerate(drawn))
    for number, curve in numbered[::-1] if first_on_top else numbered:
        colour = curve.colour or style.category_colour(number)
        values = as_array(curve.values, name=curve.name, axes=("position",))
        if len(values) > len(places):
            raise ValueError(f"{curve.name} has {len(values)} numbers, but there are {len(places)} places")
        group = f"{curve.name} {colour}"
        figure.scatter(
            x=places[: len(values)],
            y=values,
            mode="lines+markers" if curve.marker else "lines",
            name=curve.name,
            legendgroup=group,
            showlegend=group not in listed,
            line={
                "color": colour,
                "width": curve.width,
                "dash": curve.dash or _DASHES[number // len(style.CATEGORICAL) % len(_DASHES)],
            },
            marker={"size": curve.marker},
            hovertemplate=style.hover(*curve.hover),
            **({} if curve.detail is None else {"customdata": curve.detail}),
            text=[style.escape(text) for text in curve.texts] or None,
        )
        listed.add(group)
        if curve.points:
            here = len(curve.points)
            figure.scatter(
                x=places[:here],
                y=values[:here],
                mode="markers",
                legendgroup=group,
                marker={"color": colour, "size": 10 if here <= 20 else 6, "line": {"width": 1, "color": "white"}},
                text=[style.escape(name) for name in curve.points],
                hovertemplate=style.hover(*curve.points_hover),
            )
    style.finish(figure, height=height, top=48)
    figure.update_layout(legend={"traceorder": "reversed" if first_on_top else "normal"})
    figure.update_xaxes(**{"title_text": across, **(xaxis or {})})
    figure.update_yaxes(**{"title_text": up, **(yaxis or {})})
    return figure.drawn()
