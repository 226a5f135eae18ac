"""One sentence through training: a head's map at every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import require_index, require_same_length
from charts.toolkit.sheet import place_side_by_side
from charts.toolkit.words import say

if TYPE_CHECKING:
    from transformer.runs.attention_view import AttentionView

MAX_CELLS = 96  # cells of a small map along each side
_MAX_LABELS = 24  # largest number of rows that have labels


def map_strip(views: Sequence[AttentionView], *, head: int, names: Sequence[str], chosen: int) -> go.Figure:
    """Draw the map of one head at every step, side by side on the same scale 0…1; masked cells are grey.

    Args:
        views: One layer at every step, with the same tokens. With more than ``MAX_CELLS`` tokens, a point of a small
            map is the largest of several weights, as the title of the colour bar says.
        head: Index of the head.
        names: Titles above the maps.
        chosen: Index of the framed map.
    """
    if not views:
        raise ValueError("views has 0 entries, so there is nothing to draw; give one for each step")
    first = views[0]
    require_same_length("names", names, expected=len(views), of="views")
    require_index(head, name="head", size=first.n_heads)
    require_index(chosen, name="chosen", size=len(views))
    if any(view.query.ids != first.query.ids or view.key.ids != first.key.ids for view in views):
        raise ValueError("views have different tokens; every step must have read the same sentence")
    n_queries, n_keys = first.allowed.shape
    figure = place_side_by_side([style.escape(name) for name in names], spacing=0.012)
    for column, view in enumerate(views, start=1):
        weights, places, bar_note = _small(np.where(view.allowed, view.weights[head], np.nan).astype(np.float32))
        bar = style.colour_bar(bar_note, len=0.2, y=0, yanchor="top", ypad=8) if column == 1 else None
        hover = style.lines(
            style.escape(names[column - 1]),
            say("training.token_looks_at", token="%{y}", other="%{x}"),
            *filter(None, [bar_note]),
        )
        figure.add_trace(parts.heatmap(weights, hover=hover, bar=bar, **places), col=column)
        if not view.allowed.all():
            figure.add_trace({**_masked(np.isnan(weights)), **places}, col=column)
        figure.update_xaxes(col=column, **style.label_axis(first.key.displays, title=""))
        figure.update_yaxes(col=column, **style.label_rows(first.query.displays, title=""))
    figure.update_xaxes(showticklabels=False)
    rows_labelled = n_queries <= _MAX_LABELS
    figure.update_yaxes(col=1, title_text=say("training.query"), showticklabels=rows_labelled)
    figure.update_xaxes(col=(len(views) + 1) // 2, title_text=say("names.key_axis"), title_standoff=6)
    row = min(24.0, max(14.0 if rows_labelled else 2.0, 150 / n_queries))
    style.finish(figure, height=n_queries * row + 92, top=44)
    line = {"color": style.CHOSEN, "width": 4}
    figure.add_box((-0.5, n_keys - 0.5), (-0.5, n_queries - 0.5), col=chosen + 1, name="focus", line=line)
    return figure.drawn()


def _small(weights: np.ndarray) -> tuple[np.ndarray, dict[str, Any], str]:
    """Return a map that fits a small figure: the largest weight of each block.

    Returns:
        The map, [query, key] (NaN where all cells are masked), the positions of the blocks, and a note about it (""
        if every cell is shown).
    """
    blocks = [2 * int(np.ceil(count / MAX_CELLS) // 2) + 1 if count > MAX_CELLS else 1 for count in weights.shape]
    if blocks == [1, 1]:
        return weights, {}, ""
    (rows, columns), (high, wide) = weights.shape, blocks
    padded = np.full((-(-rows // high) * high, -(-columns // wide) * wide), -np.inf, dtype=weights.dtype)
    padded[:rows, :columns] = np.where(np.isnan(weights), -np.inf, weights)
    largest = padded.reshape(len(padded) // high, high, -1, wide).max(axis=(1, 3))
    # A block with an odd number of tokens has a middle one, whose position represents the block.
    places = {
        name: np.arange(count) * block + block // 2
        for name, count, block in zip("yx", largest.shape, blocks, strict=True)
    }
    return (
        np.where(np.isneginf(largest), np.nan, largest),
        places,
        say("training.largest_weights", high=high, wide=wide),
    )


def _masked(masked: np.ndarray) -> dict:
    """Return a layer that is grey where the mask forbids attention."""
    return {
        "type": "heatmap",
        "z": np.where(masked, 1.0, np.nan).astype(np.float32),
        "colorscale": [[0, style.QUIET], [1, style.QUIET]],
        "showscale": False,
        "hoverongaps": False,
        "hovertemplate": style.hover(say("masked")),
    }
