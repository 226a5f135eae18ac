"""Texts written by different strategies, compared by how likely the model finds them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _


def running_log_probability(log_p: Mapping[str, Any], *, tokens: Mapping[str, Sequence[str]]) -> go.Figure:
    """Σ log p after every token, one line a text: the higher, the likelier the model finds the text up to there.

    ``log_p``: for each name [step], ln p of each token under the model; ``tokens``: the tokens as displayed.
    """
    figure = Sheet()
    for index, (name, values) in enumerate(log_p.items()):
        array = as_array(values, name=f"log_p of {name}", axes=("step",))
        require_same_length(f"tokens of {name}", tokens[name], expected=len(array), of="log-probabilities")
        figure.scatter(
            x=np.arange(len(array) + 1),
            y=np.concatenate(([0.0], np.cumsum(array, dtype=np.float64))).astype(np.float32),
            mode="lines+markers",
            name=style.escape(name),
            line={
                "color": (style.BAR, style.CATEGORICAL[2], style.CATEGORICAL[1])[index % 3],
                "width": (7, 4, 3)[index % 3],  # equal texts lie on top of each other, and all can be seen
                "dash": ("solid", "solid", "dot")[index % 3],
            },
            marker={"size": (10, 8, 7)[index % 3]},
            text=["", *map(style.escape, tokens[name])],
            hovertemplate=style.hover(
                _("{name}, token {place}: {token}", name=style.escape(name), place="%{x}", token="%{text}"),
                _("Σ log p {value}", value=style.exact("y")),
            ),
        )
    style.finish(figure, height=340, top=48)
    figure.update_xaxes(title_text=_("tokens written"), showgrid=False)
    figure.update_yaxes(title_text=_("Σ log p so far"))
    return figure.drawn()
