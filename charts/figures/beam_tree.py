"""A beam search as a tree: the branches kept and pruned at every step, and the output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from charts.toolkit import shades, style
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet, bar, scatter
from charts.toolkit.words import say

if TYPE_CHECKING:
    from transformer.predictions.hypothesis_tree import BeamNode, BeamTree

LONGEST = 9  # characters of a word in its box; the hover has all of them
COLUMN = 82  # pixels that a step needs to show its tokens
_HALF = 0.36  # half a box, in steps
_ROW = 30  # pixels
_ORDER = ("kept", "open", "finished", "pruned")
_DONE = style.CATEGORICAL[2]
_FATES = {
    "kept": "decoding.kept_rank",
    "pruned": "decoding.pruned_rank",
    "open": "decoding.open_rank",
    "finished": "decoding.finished_rank",
}


def search_tree(tree: BeamTree, *, first: int = 1, n_steps: int = 12, pruned: int = 2) -> go.Figure:
    """Draw the steps ``first`` … ``first + n_steps − 1`` of a search from left to right; no lines cross.

    Coloured boxes were kept; the colour is the log probability of the text up to there. Grey boxes were pruned; the
    ``pruned`` most likely ones of each text are drawn. The output is at the top. Finished texts are drawn if they are
    among the best ``width``, with their rank by score.
    """
    if not 1 <= first <= tree.n_steps:
        raise ValueError(f"first is {first}, but the search took {tree.n_steps} steps; choose 1 to {tree.n_steps}")
    if n_steps < 1 or pruned < 0:
        raise ValueError(f"n_steps is {n_steps} and pruned {pruned}; draw at least 1 step and 0 pruned branches")
    last = min(tree.n_steps, first + n_steps - 1)
    winner = {node.index for node in tree.winner}
    rows = _layout(tree, winner, last=last, pruned=pruned)
    shown = [tree.nodes[index] for index in rows if first <= tree.nodes[index].step <= last]
    alive = [node for node in shown if node.fate != "pruned"]
    lowest = min((node.total for node in alive), default=-1.0) or -1.0
    figure = Sheet()
    for name, colour, width, nodes in (
        (say("decoding.pruned"), style.QUIET, 1, [node for node in shown if node.fate == "pruned"]),
        (say("decoding.kept"), style.NEUTRAL, 2.5, [node for node in alive if node.index not in winner]),
        (say("decoding.output"), style.CHOSEN, 6, [node for node in alive if node.index in winner]),
    ):
        if nodes:
            figure.add_trace(_lines(nodes, rows, first=first, name=name, line={"color": colour, "width": width}))
    figure.add_trace(_boxes(tree, [node for node in shown if node.fate == "pruned"], rows, winner, lowest=None))
    figure.add_trace(_boxes(tree, alive, rows, winner, lowest=lowest))
    if any(node.fate == "finished" for node in alive):
        marker = {"symbol": "square-open", "size": 14, "color": _DONE, "line": {"width": 3}}
        figure.scatter(x=[None], y=[None], mode="markers", name=say("decoding.finished_ranks"), marker=marker)
    n_rows = 1 + max((rows[node.index] for node in shown), default=0)
    style.finish(figure, height=_ROW * n_rows + 150, top=84)
    figure.update_layout(barmode="overlay", hovermode="closest")
    figure.update_xaxes(
        title_text=say("decoding.step_axis"),
        tickvals=list(range(first, last + 1)),
        range=[first - 0.55, max(last, first + 3) + 0.45],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        title_text=say("decoding.branches"),
        range=[n_rows - 0.4, -0.6],
        showticklabels=False,
        showgrid=False,
        zeroline=False,
    )
    return figure.drawn()


def _layout(tree: BeamTree, winner: set[int], *, last: int, pruned: int) -> dict[int, int]:
    """Return the row of every drawn node, by index; children follow the order of their parents."""
    children: dict[int, list[BeamNode]] = {}
    for node in tree.nodes:
        children.setdefault(node.parent, []).append(node)
    rows: dict[int, int] = {}
    parents = [-1]
    for _step in range(last):
        column = []
        for parent in parents:
            nodes = sorted(
                children.get(parent, ()),
                key=lambda node: (node.index not in winner, _ORDER.index(node.fate), -node.total),
            )
            cut = [node.index for node in nodes if node.fate == "pruned"][pruned:]
            column += [node.index for node in nodes if node.index not in cut and _worth_drawing(tree, node)]
        rows.update({index: row for row, index in enumerate(column)})
        parents = column
    return rows


def _worth_drawing(tree: BeamTree, node: BeamNode) -> bool:
    """Return the endings to draw: texts can end at every step, but few endings are among the best."""
    return node.fate != "finished" or node.rank <= tree.strategy.width


def _lines(nodes: Iterable[BeamNode], rows: dict[int, int], *, first: int, name: str, line: dict) -> dict[str, Any]:
    """Return lines from each node's parent to the node; the first lines start at the margin."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for node in nodes:
        left = node.step - 1 + _HALF if node.step > first else first - 0.55
        start = rows.get(node.parent, 0)
        xs += [left, node.step - _HALF, None]
        ys += [start, rows[node.index], None]
    return scatter(x=xs, y=ys, mode="lines", name=name, line=line, hoverinfo="skip")


def _boxes(
    tree: BeamTree, nodes: list[BeamNode], rows: dict[int, int], winner: set[int], *, lowest: float | None
) -> dict[str, Any]:
    """Draw one box per node, coloured from ``lowest`` to 0, or grey if ``lowest`` is ``None``."""
    if lowest is None:
        marker: dict[str, Any] = {"color": "rgba(128,128,128,0.12)", "line": {"color": style.QUIET, "width": 1}}
        inks: Any = style.NEUTRAL
    else:
        borders = [
            _DONE if node.fate == "finished" else style.CHOSEN if node.index in winner else "rgba(0,0,0,0)"
            for node in nodes
        ]
        marker = {
            "color": [node.total for node in nodes],
            "cmin": lowest,
            "cmax": 0,
            "colorscale": style.colour_scale(style.SEQUENTIAL),
            "showscale": True,
            "colorbar": style.colour_bar(say("decoding.log_p_axis"), ypad=style.ABOVE_NAMES),  # above the legend
            "line": {"color": borders, "width": 3},
        }
        inks = [shades.ink(1 - node.total / lowest, colours=style.SEQUENTIAL) for node in nodes]
    return bar(
        base=[node.step - _HALF for node in nodes],
        x=[2 * _HALF] * len(nodes),
        y=[rows[node.index] for node in nodes],
        orientation="h",
        width=0.74,
        marker={**marker, "cornerradius": 4},
        text=[style.escape(_label(node)) for node in nodes],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        insidetextfont={"size": style.TICK_SIZE, "color": inks},
        customdata=[_explanation(tree, node) for node in nodes],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _label(node: BeamNode) -> str:
    word = style.shorten(node.display, LONGEST)
    return f"{word} #{node.rank}" if node.fate == "finished" else word


def _explanation(tree: BeamTree, node: BeamNode) -> str:
    """Return the hover text: the text so far, all digits, and whether the node was pruned."""
    before = "".join([each.display for each in tree.path(node.parent)]).replace("·", " ").strip()
    title = f"<b>{style.escape(node.display)}</b>"
    if before:
        title = say("decoding.token_after_text", token=title, text=style.escape(before))
    return style.lines(
        title,
        say("decoding.log_p", value=number(f"{node.log_p:.9g}")),
        say("decoding.sum_log_p", value=number(f"{node.total:.9g}")),
        say("decoding.penalized_score", score=number(f"{node.score:.9g}")),
        say(_FATES[node.fate], rank=node.rank),
    )
