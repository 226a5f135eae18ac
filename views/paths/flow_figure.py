"""Information flow to one word: nodes are tokens after each layer, lines are as thick as shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _
from transformer.text.message import N_

if TYPE_CHECKING:
    from transformer.attribution.information_flow import Edge, Flow, Node
    from transformer.text.tokens import TokenSequence

STACKS, KINDS = ("encoder", "decoder"), ("self", "cross")  # indices in the data of the marks
_KINDS = {"residual": N_("residual"), "self": N_("self-attention"), "cross": N_("cross-attention")}
_COLOURS = {"residual": style.NEUTRAL, "self": style.BAR, "cross": style.CHOSEN}
_STEPS = (0.05, 0.1, 0.2, 0.4, 1.0)  # upper bounds of the shares that have one line width
_WIDTHS = (1.0, 2.0, 4.0, 6.0, 9.0)


def flow_graph(flow: Flow, *, tokens: Mapping[str, TokenSequence], height: int = 400) -> go.Figure:
    """Draw the nodes and edges of an information flow.

    ``tokens`` maps each stack to its tokens. Only tokens with edges have a column, the encoder's first; layers run up.
    The mark in the middle of a line shows its numbers; a click on it sends the location of its strongest head:
    ``STACKS`` and ``KINDS`` by index, layer, head, token. Those of residual lines have head −1.
    """
    columns = {
        place: index
        for index, place in enumerate(
            sorted({(node.stack != "encoder", node.stack, node.token) for node in flow.weights})
        )
    }
    column = {(stack, token): index for (_later, stack, token), index in columns.items()}
    groups: dict[tuple[Node, Node], list[Edge]] = {}
    for edge in flow.edges:
        groups.setdefault((edge.source, edge.target), []).append(edge)
    figure = Sheet()
    drawn: dict[tuple[str, int], tuple[list, list]] = {}
    marks: dict[str, tuple[list, list, list, list]] = {}
    for (source, target), edges in groups.items():
        kind = "cross" if edges[0].kind == "cross" else "residual" if source.token == target.token else "self"
        share = sum(edge.share for edge in edges)
        width = next(index for index, step in enumerate(_STEPS) if share <= step + 1e-6)
        xs, ys = drawn.setdefault((kind, width), ([], []))
        ends = [(column[node.stack, node.token], node.level) for node in (source, target)]
        xs += [ends[0][0], ends[1][0], None]
        ys += [ends[0][1], ends[1][1], None]
        strongest = max(edges, key=lambda edge: (edge.head >= 0, edge.share))
        mark = marks.setdefault(kind, ([], [], [], []))
        mark[0].append(0.6 * ends[0][0] + 0.4 * ends[1][0])
        mark[1].append(0.6 * ends[0][1] + 0.4 * ends[1][1])
        mark[2].append(_edge_text(edges, share, source, target, tokens))
        mark[3].append([*_place(strongest)])
    named: set[str] = set()
    for (kind, width), (xs, ys) in sorted(drawn.items()):
        line = {"color": _COLOURS[kind], "width": _WIDTHS[width]}
        figure.scatter(
            x=xs, y=ys, mode="lines", name=_(_KINDS[kind]), legendgroup=kind, showlegend=kind not in named,
            line=line, opacity=0.7, hoverinfo="skip",
        )  # fmt: skip
        named.add(kind)
    for kind, (xs, ys, texts, places) in marks.items():
        marker = {"size": 9, "color": _COLOURS[kind], "opacity": 0.35}
        figure.scatter(
            x=xs, y=ys, mode="markers", name=_(_KINDS[kind]), marker=marker, showlegend=False, text=texts,
            customdata=places, hovertemplate="%{text}<extra></extra>",
        )  # fmt: skip
    nodes = sorted(flow.weights)
    figure.scatter(
        x=[column[node.stack, node.token] for node in nodes],
        y=[node.level for node in nodes],
        mode="markers",
        name=_("token after a layer"),
        marker={
            "size": [8 + 14 * min(1.0, flow.weights[node]) for node in nodes],
            "color": [style.CHOSEN if node in flow.start else style.NEUTRAL for node in nodes],
        },
        text=[_node_text(flow, node, tokens) for node in nodes],
        hovertemplate="%{text}<extra></extra>",
    )
    style.finish(figure, height=height, top=40)
    figure.update_layout(hovermode="closest", clickmode="event+select")
    labels = [tokens[stack].displays[token] for (_later, stack, token) in columns]
    figure.update_xaxes(**style.label_axis(labels, title=_("token")))
    figure.update_yaxes(
        title_text=_("number of layers"), dtick=1, range=[-0.4, max(node.level for node in nodes) + 0.4], zeroline=False
    )
    return figure.drawn()


def _place(edge: Edge) -> tuple[int, int, int, int, int]:
    node = edge.target
    return STACKS.index(node.stack), int(edge.kind == "cross"), node.level - 1, edge.head, node.token


def _named(node: Node, tokens: Mapping[str, TokenSequence]) -> str:
    token = style.escape(tokens[node.stack].displays[node.token])
    return _("{token} after {level} layers", token=token, level=node.level)


def _edge_text(edges: list[Edge], share: float, source: Node, target: Node, tokens: Mapping[str, TokenSequence]) -> str:
    """Return both ends, the share, and the strongest heads of a line as text."""
    parts = [
        f"{_named(source, tokens)} → {_named(target, tokens)}",
        _("share {share}", share=number(f"{share:.9g}")),
    ]
    for edge in sorted(edges, key=lambda edge: -edge.share)[:4]:
        share_text = number(f"{edge.share:.3g}")
        if edge.head >= 0:
            parts.append(_("head {head}: {share}", head=edge.head, share=share_text))
        elif edge.kind == "feed_forward":
            parts.append(_("feed-forward: {share}", share=share_text))
        else:
            parts.append(_("residual: {share}", share=share_text))
    return style.lines(*parts)


def _node_text(flow: Flow, node: Node, tokens: Mapping[str, TokenSequence]) -> str:
    parts = [
        f"<b>{_named(node, tokens)}</b>",
        _("of the prediction: {share}", share=number(f"{flow.weights[node]:.9g}")),
    ]
    if node in flow.feed_forward:
        parts.append(_("feed-forward: {share}", share=number(f"{flow.feed_forward[node]:.3g}")))
    return style.lines(*parts)
