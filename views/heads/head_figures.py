"""Figures of the Heads page: all heads as a matrix and as points, and one head over many sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, as_probabilities, require_index, require_same_length
from charts.toolkit.head_names import head_name
from charts.toolkit.numbers import percent
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _

if TYPE_CHECKING:
    from transformer.runs.attention_view import AttentionView

_WIDE, _TALL = 0.84, 0.78  # shares of the space of one head
_NAMED = 40  # with more points than this, the names are only in the hover text


def head_scores(
    scores: Any,
    *,
    name: str,
    layers: Sequence[str] | None = None,
    roles: Sequence[Sequence[str]] | None = None,
    maximum: float = 1.0,
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Draw one number for every head, layer × head, with the head's role in its cell.

    ``scores``: [layer, head], 0…``maximum`` (1 for shares, log₂ of the number of keys for an entropy); ``name``:
    what the number is; ``layers``: the name of each row; ``roles``: a word per head; ``chosen``: the (layer, head)
    to frame.
    """
    values = as_array(scores, name="scores", axes=("layer", "head"), signed=False)
    n_layers, n_heads = values.shape
    if values.max() > maximum * (1 + 1e-4):
        raise ValueError(f"scores holds {style.three_digits(values.max())}, more than the maximum {maximum}")
    names = list(layers) if layers is not None else [_("layer {layer}", layer=layer) for layer in range(n_layers)]
    require_same_length("layers", names, expected=n_layers, of="rows of scores")
    texts = [[style.three_digits(float(value)) for value in row] for row in values]
    if roles is not None:
        require_same_length("roles", roles, expected=n_layers, of="rows of scores")
        for layer, row in enumerate(roles):
            require_same_length(f"roles of layer {layer}", row, expected=n_heads, of="heads")
            texts[layer] = [
                f"{text}<br>{style.escape(role)}" if role else text
                for text, role in zip(texts[layer], row, strict=True)
            ]
    trace = parts.heatmap(
        values,
        hover=style.lines(_("{place}, head {head}", place="%{y}", head="%{x}"), style.escape(name)),
        bar=style.colour_bar(style.escape(name)),
        maximum=float(maximum),
        xgap=2,
        ygap=2,
    )
    figure = Sheet(trace, parts.cell_texts(trace, texts=texts))
    style.finish(figure, height=max(44, 30 + 16 * (roles is not None)) * n_layers + 130, top=64)
    figure.update_yaxes(**style.label_rows(names, title=_("layer")))
    figure.update_xaxes(**style.label_axis([str(head) for head in range(n_heads)], title=_("head")))
    if chosen is not None:
        layer = require_index(chosen[0], name="chosen layer", size=n_layers)
        head = require_index(chosen[1], name="chosen head", size=n_heads)
        box = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5, "name": "focus"}
        figure.add_shape(type="rect", **box, line={"color": style.CHOSEN, "width": 4})
    return figure.drawn()


def entropy_strip(view: AttentionView) -> go.Figure:
    """Draw the entropy of every row of every head in bits, head × query, 0 … log₂(number of keys).

    0 = one key gets everything; log₂(n) = all n keys get the same. A row that can attend to one key only always has
    entropy 0; such columns are hatched.
    """
    values = np.asarray(view.entropy, dtype=np.float32)
    keys = np.asarray(view.allowed, dtype=bool).sum(axis=1)
    forced = keys <= 1
    values = np.where(forced[None, :], np.nan, values)
    possible = max(1.0, float(np.log2(max(2, len(view.key)))))
    trace = parts.heatmap(
        values,
        hover=style.lines(
            _("{place}, query {token} (position {position})", place="%{y}", token="%{x}", position="%{x:d}"),
            _("entropy in bits"),
        ),
        bar=style.colour_bar(_("entropy (bits)")),
        maximum=possible,
        xgap=1,
        ygap=1,
    )
    figure = Sheet(trace, *([parts.cell_texts(trace)] if len(view.query) <= 8 else []))
    if forced.any():
        hatched = parts.mask_bars(forced, low=-0.5, high=view.n_heads - 0.5)
        hatched.update(
            name=_("no choice: at most one key"),
            hovertemplate=style.hover(_("{token}: at most one key, no choice", token="%{x}")),
        )
        figure.add_trace(hatched)
    style.finish(figure, height=style.rows_height(view.n_heads, around=150), top=64)
    figure.update_yaxes(
        **style.label_rows([_("head {head}", head=head) for head in range(view.n_heads)], title=_("head"))
    )
    figure.update_xaxes(**style.token_axis(view.query, title=_("query: the token that looks")))
    return figure.drawn()


def head_profiles(
    profiles: Mapping[tuple[int, int], Mapping[int, float]],
    *,
    names: Mapping[tuple[int, int], str],
    clear: Sequence[tuple[int, int]] = (),
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Draw the mean weight at each distance for every head, as curves on one scale from 0 to 1.

    ``profiles`` maps (layer, head) to the mean weight by distance; earlier tokens are to the left of the middle.
    ``names`` is the text about each head; the curves of the heads in ``clear`` are strong, and ``chosen`` has a frame.
    """
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
                    head_name(layer, head),
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
    """Draw two measures of every head as points.

    ``across`` and ``up`` are the measures, [head]; ``labels`` are such as "1.4" for head 4 of layer 1; ``axes`` are
    their names; ``chosen`` is the head with a ring.
    """
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
        (_("this head"), values, style.BAR, texts),
        (_("by chance"), expected, style.MASKED, None),
    ):
        bars = parts.bar_rows(row, hover=f"%{{y}}, {name}", colours=colour)
        figure.add_trace({**bars, "name": name, "text": text, "showlegend": True})
    style.finish(figure, height=34 * len(values) + 96, top=32)
    figure.update_layout(barmode="group", bargap=0.25, legend={"x": 1, "xanchor": "right", "y": 1.12})
    figure.update_yaxes(**style.label_rows(list(names), title=_("what it looks at")))
    figure.update_xaxes(title_text=_("share of the rows"), range=[0, 1.15 * max(values.max(), expected.max(), 0.1)])
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
    figure.update_yaxes(title_text=_("share of the rows"), range=[0, 1.15 * max(values.max(), 0.05)])
    return figure.drawn()
