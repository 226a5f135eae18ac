"""Figures of the rows of the embedding matrix E that a sentence looks up, and of their location in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_index, require_same_length
from charts.toolkit.sheet import Sheet, place_side_by_side
from charts.toolkit.words import say

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence


def embedding_rows(rows: Any, *, tokens: TokenSequence, vocabulary_size: int, followed: int | None = None) -> go.Figure:
    """Draw the matrix E as a column on the left, and the rows that are looked up on the right.

    ``rows``: [token, model], row t = E[tokens.ids[t]]. Every mark is at its true height (id / vocabulary size)
    and a line leads to the row. ``followed``: the token whose mark and line are emphasised, with its id, and
    whose row is framed. Raises ``ValueError`` for an id outside the vocabulary.
    """
    values = as_array(rows, name="rows", axes=("token", "dimension"), sizes={"token": len(tokens)})
    for token in tokens:
        require_index(token.id, name=f"the id of token {token.display!r}", size=vocabulary_size)
    n_tokens, n_dimensions = values.shape
    figure = place_side_by_side(["E", "", say("embeddings.sentence_rows")], widths=[0.06, 0.16, 0.78], spacing=0.0)

    if followed is not None:
        require_index(followed, name="followed", size=n_tokens)
    ids = np.array(tokens.ids)
    heights = ids + 0.5
    quiet = style.CHOSEN if followed is None else style.NEUTRAL
    figure.scatter(
        x=np.full(n_tokens, 0.5),
        y=heights,
        mode="markers",
        marker={"symbol": "line-ew", "size": 26, "line": {"width": 2, "color": quiet}},
        customdata=[[style.escape(token.display), token.id] for token in tokens],
        hovertemplate=style.hover(say("embeddings.token_row", token="%{customdata[0]}", row="<b>%{customdata[1]}</b>")),
    )
    # The middle panel also has ids as its axis; a row of the right panel has the same relative height.
    ends = (np.arange(n_tokens) + 0.5) / n_tokens * vocabulary_size
    figure.scatter(
        x=[x for _ in range(n_tokens) for x in (0, 1, None)],
        y=[y for start, end in zip(heights, ends, strict=True) for y in (float(start), float(end), None)],
        mode="lines",
        line={"width": 1, "color": quiet if followed is None else style.QUIET},
        hoverinfo="skip",
        col=2,
    )
    if followed is not None:
        _follow(figure, tokens, followed, height=float(heights[followed]), end=float(ends[followed]))
    limit = style.symmetric_limit(values)
    figure.add_trace(
        parts.heatmap(
            values,
            hover=style.lines(
                say("token_position", token="%{y}", place="%{y:d}"),
                say("dimension", dimension="%{x}"),
            ),
            bar=style.colour_bar(say("names.value"), ypad=style.ABOVE_NAMES),
            limit=limit,
            ygap=1,
        ),
        col=3,
    )
    if followed is not None:
        box = {"x0": -0.5, "x1": n_dimensions - 0.5, "y0": followed - 0.5, "y1": followed + 0.5}
        figure.add_shape(type="rect", **box, line={"color": style.CHOSEN, "width": 3}, xref="x3", yref="y3")
    style.finish(figure, height=max(340, style.rows_height(n_tokens, around=140)), top=90)
    figure.update_yaxes(matches=None, fixedrange=True)
    column: dict[str, Any] = {"range": [vocabulary_size, 0], "showgrid": False, "zeroline": False}
    figure.update_yaxes(**column, title_text=say("embedding_row"), col=1)
    figure.update_yaxes(**column, visible=False, col=2)
    # The tokens are on the right, so that the lines from E reach the rows.
    figure.update_yaxes(**style.token_rows(tokens, title=""), showticklabels=True, side="right", col=3)
    for panel in (1, 2):
        figure.update_xaxes(visible=False, fixedrange=True, range=[0, 1], col=panel)
    whole = {"x0": 0, "x1": 1, "y0": 0, "y1": vocabulary_size}
    figure.add_shape(
        type="rect", **whole, line={"color": style.NEUTRAL, "width": 1}, fillcolor=style.GRID, layer="below"
    )
    figure.update_xaxes(title_text=say("dimension_axis", n=n_dimensions), fixedrange=True, col=3)
    return figure.drawn()


def _follow(figure: Sheet, tokens: TokenSequence, followed: int, *, height: float, end: float) -> None:
    """Draw the mark of one token in E with its id, and its line to the row."""
    token = tokens[followed]
    figure.scatter(
        x=[0.5],
        y=[height],
        mode="markers",
        marker={"symbol": "line-ew", "size": 26, "line": {"width": 5, "color": style.CHOSEN}},
        hovertemplate=style.hover(
            say("embeddings.token_row", token=style.escape(token.display), row=f"<b>{token.id}</b>")
        ),
    )
    figure.scatter(
        x=[0, 1], y=[height, end], mode="lines", line={"width": 4, "color": style.CHOSEN}, hoverinfo="skip", col=2
    )


def embedding_window(
    rows: Any, *, row_ids: Sequence[int], displays: Sequence[str], looked_up: Sequence[int]
) -> go.Figure:
    """Draw the rows looked up among their neighbours in E, with a gap wherever rows are omitted.

    ``rows``: [row, model], row k = E[row_ids[k]], ``row_ids`` ascending; ``displays``: the piece of each row;
    ``looked_up``: the ids of the sentence (marked by an arrow). Raises ``ValueError`` if ``row_ids`` are not
    ascending or lack an id that is looked up.
    """
    values = as_array(rows, name="rows", axes=("row", "dimension"), sizes={"row": len(row_ids)})
    require_same_length("displays", displays, expected=len(row_ids), of="rows")
    if list(row_ids) != sorted(set(row_ids)):
        raise ValueError(f"row_ids are {list(row_ids)}; give each row of E once, in rising order")
    absent = sorted(set(looked_up) - set(row_ids))
    if absent:
        raise ValueError(f"looked_up names the ids {absent}, which are not among the rows given")
    labels, order = [], []
    for index, row_id in enumerate(row_ids):
        if index and row_id != row_ids[index - 1] + 1:
            labels.append("⋮")
            order.append(-1)
        labels.append(f"{displays[index]}  {row_id}{'  ▶' if row_id in set(looked_up) else ''}")
        order.append(index)
    spaced = np.full((len(order), values.shape[1]), np.nan, dtype=np.float32)
    for place, index in enumerate(order):
        if index >= 0:
            spaced[place] = values[index]
    figure = Sheet(
        parts.heatmap(
            spaced,
            hover=style.lines(say("embeddings.row", row="%{y}"), say("dimension", dimension="%{x}")),
            bar=style.colour_bar(say("names.value")),
            limit=style.symmetric_limit(values),
            ygap=1,
        )
    )
    style.finish(figure, height=style.rows_height(len(order)), top=64)
    figure.update_yaxes(**style.label_rows(labels, title=say("embeddings.rows_axis")))
    figure.update_xaxes(title_text=say("dimension_axis", n=values.shape[1]))
    return figure.drawn()
