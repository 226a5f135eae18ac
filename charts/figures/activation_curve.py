"""An activation function as a curve, with one token's hidden units on it."""

from collections.abc import Callable, Mapping
from math import erf, pi, sqrt
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array
from charts.toolkit.numbers import whole
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import say


def _gelu(x: np.ndarray) -> np.ndarray:
    """Return GELU with the exact normal distribution function (Hendrycks & Gimpel 2016)."""
    return x * 0.5 * (1 + np.vectorize(erf, otypes=[float])(x / sqrt(2)))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    """Return GELU with tanh instead of the distribution function (Hendrycks & Gimpel 2016, §2)."""
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


_WITH_TANH = "GELU(x) ≈ x · (1 + tanh(√(2/π) (x + 0.0447 x³))) / 2", _gelu_tanh
CURVES: Mapping[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "relu": ("ReLU(x) = max(0, x)", lambda x: np.maximum(x, 0)),
    "gelu": ("GELU(x) = x · Φ(x)", _gelu),
    "gelu_new": _WITH_TANH,
    "gelu_tanh": _WITH_TANH,
    "quick_gelu": ("GELU(x) ≈ x · σ(1.702 x)", lambda x: x / (1 + np.exp(-1.702 * x))),
    "silu": ("SiLU(x) = x · σ(x)", lambda x: x / (1 + np.exp(-x))),
    "tanh": ("tanh(x)", np.tanh),
}


def activation_curve(pre_activation: Any, *, activation: str, token: str, gated: bool = False) -> go.Figure:
    """Draw the activation function, with one token's units as dots on it and as ticks below.

    ``pre_activation``: [unit]; ``activation``: one of ``CURVES``; ``token``: its displayed form.
    ``gated``: the function returns the gate by which the hidden value is multiplied.
    """
    values = as_array(pre_activation, name="pre_activation", axes=("unit",))
    if activation not in CURVES:
        raise ValueError(f"activation is {activation!r}; choose one of {', '.join(CURVES)}")
    name, curve = CURVES[activation]
    reach = 1.05 * style.symmetric_limit(values)
    line = np.linspace(-reach, reach, 301).astype(np.float32)
    outputs, below = curve(values).astype(np.float32), int((values <= 0).sum())
    look = {"color": style.BAR, "width": 3}
    figure = Sheet()
    figure.scatter(x=line, y=curve(line).astype(np.float32), mode="lines", name=name, line=look, hoverinfo="skip")
    figure.scatter(
        x=values,
        y=outputs,
        mode="markers",
        name=say("feed_forward.units_for_token", n=whole(len(values)), token=style.escape(token)),
        customdata=np.arange(len(values), dtype=np.int32),
        marker={"color": style.CHOSEN, "size": 7, "opacity": 0.6},
        hovertemplate=style.hover(
            say("feed_forward.unit", unit="%{customdata}"),
            say("feed_forward.before", value=style.exact("x")),
            say("feed_forward.after", value=style.exact("y")),
        ),
    )
    floor = float(min(outputs.min(), 0.0)) - 0.06 * reach
    figure.scatter(
        x=values,
        y=np.full(len(values), floor, dtype=np.float32),
        mode="markers",
        marker={"symbol": "line-ns", "size": 12, "line": {"width": 1, "color": style.NEUTRAL}},
        hoverinfo="skip",
    )
    figure.add_vline(x=0, line={"color": style.NEUTRAL, "width": 1, "dash": "dot"})
    for text, place, anchor in (
        (say("feed_forward.at_most_zero", n=whole(below)), -0.02, "right"),
        (say("feed_forward.above_zero", n=whole(len(values) - below)), 0.02, "left"),
    ):
        figure.add_annotation(text=text, x=place * reach, y=0.96, xref="x", yref="paper", xanchor=anchor, yanchor="top")
    style.finish(figure, height=400, top=44)
    before = say("feed_forward.gate_axis") if gated else say("feed_forward.pre_activation_axis")
    figure.update_xaxes(title_text=before, range=[-reach, reach], zeroline=False)
    figure.update_yaxes(title_text=say("feed_forward.gate") if gated else say("names.hidden_value"))
    return figure.drawn()
