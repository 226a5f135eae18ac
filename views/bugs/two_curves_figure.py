"""One measure of two runs, the original and another, over layers or training steps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import localize


def two_curves(
    healthy: Any,
    *,
    other: Any,
    at: Sequence[str] | Sequence[int],
    title: str,
    across: str,
    names: tuple[str, str] = ("original", "other"),
    share: bool = False,
    logarithmic: bool = False,
) -> go.Figure:
    """Draw two curves [location] on one axis.

    Args:
        healthy: Values of the original.
        other: Values of the other run.
        at: Names of the layers, or numbers of the training steps.
        title: What is measured.
        across: Title of the horizontal axis.
        names: Names of the two curves.
        share: Whether the axis goes from 0 to 1.
        logarithmic: Whether the axis is logarithmic; all values must be above 0.

    Raises:
        ValueError: The lengths differ.
    """
    sizes = {"place": len(at)}
    curves = [
        as_array(values, name=name, axes=("place",), sizes=sizes)
        for values, name in zip((healthy, other), names, strict=True)
    ]
    if logarithmic and min(float(curve.min()) for curve in curves) <= 0:
        raise ValueError("a logarithmic axis needs values above 0")
    named = all(isinstance(place, str) for place in at)
    figure = Sheet()
    colours, dashes, signs = (style.BAR, style.CHOSEN), ("dash", "solid"), ("circle-open", "circle")
    for curve, name, colour, dash, sign in zip(curves, names, colours, dashes, signs, strict=True):
        figure.scatter(
            x=np.arange(len(at)) if named else np.asarray(at),
            y=curve,
            mode="lines+markers" if named else "lines",
            name=style.escape(name),
            line={"color": colour, "width": 3, "dash": dash},
            marker={"size": 9, "symbol": sign},
            hovertemplate=f"{style.escape(name)}, %{{x}}<br><b>%{{y:{style.EXACT}}}</b><extra></extra>",
        )
    style.finish(figure, height=300, top=48)
    figure.update_xaxes(
        **style.label_axis([localize(place) for place in at], title=across) if named else {"title_text": across}
    )
    figure.update_yaxes(title_text=title)
    if logarithmic:
        figure.update_yaxes(type="log", dtick=1, exponentformat="none")
    elif share:
        figure.update_yaxes(range=[-0.03, 1.03])
    else:
        figure.update_yaxes(rangemode="tozero")
    return figure.drawn()
