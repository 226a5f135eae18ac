"""Figures of positions within scores: the relative bias of T5 and the angles of rotary encoding."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array, require_index, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import say

_DASHES = ("solid", "dash", "dot")


def relative_bias(bias: Any, *, distances: Sequence[int]) -> go.Figure:
    """Draw what each head adds to a score at each distance, before the softmax: one curve per head.

    ``bias`` is [head, distance]; ``distances`` are key position − query position of each column (negative = to the
    left).
    """
    values = as_array(bias, name="bias", axes=("head", "distance"), sizes={"distance": len(distances)})
    figure = Sheet()
    for head, curve in enumerate(values):
        figure.scatter(
            x=np.asarray(distances),
            y=curve,
            mode="lines+markers",
            name=say("names.numbered_head", head=head),
            marker={"size": 5},
            line={"color": style.category_colour(head), "dash": _DASHES[head // len(style.CATEGORICAL) % 3]},
            hovertemplate=(
                style.hover(
                    say("positions.head_distance", head=head, distance="%{x}"),
                    say("positions.adds_to_score", value=style.exact("y")),
                )
            ),
        )
    style.finish(figure, height=400, top=48)
    figure.update_xaxes(title_text=say("positions.distance_axis"))
    figure.update_yaxes(title_text=say("positions.added_axis"))
    return figure.drawn()


def rotary_angles(angles: Any, *, pairs: Sequence[int], distances: Sequence[int] | None = None) -> go.Figure:
    """Draw the cosine of the angle by which rotary encoding rotates a pair of channels, over the distance.

    ``angles``: [distance, pair] in radians, m · θ_i, pair i being the channels i and i + d_k/2 of each head;
    ``pairs``: which pairs to draw, at most eight; ``distances``: the distance of each row (0, 1, 2 … if not given).
    The cosine is the factor by which the rotation scales the product of two equal pairs of channels: 1 as at distance
    0. The hover has the angle.
    """
    values = as_array(angles, name="angles", axes=("distance", "pair"))
    if not 1 <= len(pairs) <= len(style.CATEGORICAL):
        raise ValueError(f"{len(pairs)} pairs were asked for; choose 1 to {len(style.CATEGORICAL)} curves")
    places = np.arange(len(values)) if distances is None else np.asarray(distances)
    require_same_length("distances", places, expected=len(values), of="rows of angles")
    figure = Sheet()
    for number, pair in enumerate(pairs):
        require_index(pair, name="pair", size=values.shape[1])
        figure.scatter(
            x=places,
            y=np.cos(values[:, pair]),
            customdata=values[:, pair],
            mode="lines",
            name=say("positions.channels", first=pair, second=pair + values.shape[1]),
            line={"color": style.category_colour(number), "width": 2.5},
            hovertemplate=(
                style.hover(
                    say("positions.distance_pair", distance="%{x}", pair=pair),
                    say("positions.angle_rad", angle=f"%{{customdata:{style.EXACT}}}"),
                    say("positions.cosine", value=style.exact("y")),
                )
            ),
        )
    style.finish(figure, height=400, top=48)
    figure.update_xaxes(title_text=say("positions.distance_between_two_tokens"))
    figure.update_yaxes(title_text=say("positions.angle_cosine"), range=[-1.05, 1.05])
    return figure.drawn()
