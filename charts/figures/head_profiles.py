"""How much weight every head gives to every distance: a small curve for each head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _

_WIDE, _TALL = 0.84, 0.78  # of the room of a head


def head_profiles(
    profiles: Mapping[tuple[int, int], Mapping[int, float]],
    *,
    names: Mapping[tuple[int, int], str],
    clear: Sequence[tuple[int, int]] = (),
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """``profiles``: for every (layer, head) the mean weight at each distance, 0…1; to the left of the middle lies what
    stands before the token. All curves share one scale, 0…1. ``names``: what is said of each head; the curves of the
    heads in ``clear`` are drawn strongly, ``chosen`` is framed."""
    require_same_length("names", names, expected=len(profiles), of="profiles")
    n_layers, n_heads = (1 + max(place[axis] for place in profiles) for axis in (0, 1))
    reach = max((abs(distance) for curve in profiles.values() for distance in curve), default=1) or 1
    figure = Sheet()
    for (layer, head), curve in profiles.items():
        distances = sorted(curve)
        strong = (layer, head) in clear
        figure.add_trace(
            {
                "type": "scatter",
                "x": [head + 0.5 * _WIDE * distance / reach for distance in distances],
                "y": [layer + _TALL * (0.5 - curve[distance]) for distance in distances],
                "customdata": [[distance, curve[distance]] for distance in distances],
                "mode": "lines",
                "line": {"color": style.BAR if strong else style.NEUTRAL, "width": 2.5 if strong else 1.2},
                "showlegend": False,
                "hovertemplate": style.hover(
                    _("layer {layer}, head {head}", layer=layer, head=head),
                    style.escape(names[layer, head]),
                    _(
                        "distance {distance}: mean weight {weight}",
                        distance="%{customdata[0]}",
                        weight="%{customdata[1]:.3f}",
                    ),
                ),
            }
        )
        base, half = layer + 0.5 * _TALL, 0.5 * _WIDE
        thin = {"color": style.GRID, "width": 1}
        figure.add_shape(type="line", x0=head - half, x1=head + half, y0=base, y1=base, line=thin)
        figure.add_shape(type="line", x0=head, x1=head, y0=base - _TALL, y1=base, line=thin)
    style.finish(figure, height=70 * n_layers + 90, top=24)
    rows = [_("layer {layer}", layer=layer) for layer in range(n_layers)]
    figure.update_yaxes(**style.label_rows(rows, title=_("layer")))
    figure.update_xaxes(**style.label_axis([str(head) for head in range(n_heads)], title=_("head")))
    if chosen is not None:
        layer, head = chosen
        box = {"x0": head - 0.48, "x1": head + 0.48, "y0": layer - 0.48, "y1": layer + 0.48}
        figure.add_shape(type="rect", **box, line={"color": style.CHOSEN, "width": 3})
    return figure.drawn()
