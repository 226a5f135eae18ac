"""Figures of the rows that a sentence looks up in the embedding matrix E, and of where in E they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.figures.heat_maps import heat_map, token_cell
from charts.toolkit import parts, style
from charts.toolkit.axes import Axis
from charts.toolkit.checks import as_array, require_ids, require_index, require_same_length
from charts.toolkit.sheet import Sheet, place_side_by_side
from charts.toolkit.words import say

if TYPE_CHECKING:
    from transformer.text.tokens import Token, TokenSequence


def embedding_rows(rows: Any, *, tokens: TokenSequence, vocabulary_size: int, followed: int) -> go.Figure:
    """Draw the matrix E as a column on the left, and the rows that are looked up on the right.

    ``rows``: [token, model], row t = E[tokens.ids[t]]. Every mark is at its true height (id / vocabulary size)
    and a line leads to the row. ``followed``: the token whose mark and line are emphasised, with its id, and
    whose row is framed. Raises ``ValueError`` for an id outside the vocabulary.
    """
    values = as_array(rows, name="rows", axes=("token", "dimension"), sizes={"token": len(tokens)})
    require_ids(tokens, size=vocabulary_size)
    require_index(followed, name="followed", size=len(tokens))
    n_tokens, n_dimensions = values.shape
    figure = place_side_by_side(["E", "", say("embeddings.sentence_rows")], widths=[0.06, 0.16, 0.78], spacing=0.0)
    starts = [token.id + 0.5 for token in tokens]
    # The middle panel also has ids as its axis; a row of the right panel has the same relative height.
    ends = ((np.arange(n_tokens) + 0.5) / n_tokens * vocabulary_size).tolist()
    _draw_marks(figure, list(tokens), starts, colour=style.NEUTRAL, width=2)
    lines: dict[str, Any] = {"mode": "lines", "hoverinfo": "skip", "col": 2}
    figure.scatter(
        x=[x for _ in range(n_tokens) for x in (0, 1, None)],
        y=[y for start, end in zip(starts, ends, strict=True) for y in (start, end, None)],
        line={"width": 1, "color": style.QUIET},
        **lines,
    )
    _draw_marks(figure, [tokens[followed]], [starts[followed]], colour=style.CHOSEN, width=5)
    thick = {"width": 4, "color": style.CHOSEN}
    figure.scatter(x=[0, 1], y=[starts[followed], ends[followed]], line=thick, **lines)
    bar = style.colour_bar(say("names.value"), ypad=style.ABOVE_NAMES)
    limit = style.symmetric_limit(values)
    figure.add_trace(parts.heatmap(values, hover=token_cell(), bar=bar, limit=limit, ygap=1), col=3)
    frame = {"color": style.CHOSEN, "width": 3}
    figure.add_box((-0.5, n_dimensions - 0.5), (followed - 0.5, followed + 0.5), col=3, line=frame)
    style.finish(figure, height=max(340, style.rows_height(n_tokens, around=140)), top=90)
    figure.update_yaxes(matches=None, fixedrange=True)
    column: dict[str, Any] = {"range": [vocabulary_size, 0], "showgrid": False, "zeroline": False}
    figure.update_yaxes(**column, title_text=say("embedding_row"), col=1)
    figure.update_yaxes(**column, visible=False, col=2)
    # The tokens are on the right, so that the lines from E reach the rows.
    figure.update_yaxes(**style.label_rows(tokens.displays, title=""), showticklabels=True, side="right", col=3)
    for panel in (1, 2):
        figure.update_xaxes(visible=False, fixedrange=True, range=[0, 1], col=panel)
    edge = {"color": style.NEUTRAL, "width": 1}
    figure.add_box((0, 1), (0, vocabulary_size), line=edge, fillcolor=style.GRID, layer="below")
    figure.update_xaxes(title_text=say("dimension_axis", n=n_dimensions), fixedrange=True, col=3)
    return figure.drawn()


def _draw_marks(figure: Sheet, tokens: Sequence[Token], heights: Sequence[float], *, colour: str, width: int) -> None:
    """Draw where the rows of these tokens are in E."""
    figure.scatter(
        x=[0.5] * len(heights),
        y=heights,
        mode="markers",
        marker={"symbol": "line-ew", "size": 26, "line": {"width": width, "color": colour}},
        customdata=[[style.escape(token.display), token.id] for token in tokens],
        hovertemplate=style.hover(say("embeddings.token_row", token="%{customdata[0]}", row="<b>%{customdata[1]}</b>")),
    )


def embedding_window(
    rows: Any, *, row_ids: Sequence[int], displays: Sequence[str], looked_up: Sequence[int]
) -> go.Figure:
    """Draw the rows looked up among their neighbours in E, with a gap wherever rows are omitted.

    ``rows``: [row, model], row k = E[row_ids[k]], ``row_ids`` ascending; ``displays``: the token of each row;
    ``looked_up``: the ids of the sentence (marked by an arrow). Raises ``ValueError`` if ``row_ids`` are not ascending
    or lack an id that is looked up.
    """
    values = as_array(rows, name="rows", axes=("row", "dimension"), sizes={"row": len(row_ids)})
    require_same_length("displays", displays, expected=len(row_ids), of="rows")
    if list(row_ids) != sorted(set(row_ids)):
        raise ValueError(f"row_ids are {list(row_ids)}; give each row of E once, in rising order")
    absent = sorted(set(looked_up) - set(row_ids))
    if absent:
        raise ValueError(f"looked_up names the ids {absent}, which are not among the rows given")
    labels: list[str] = []
    spaced: list[np.ndarray] = []
    for row, row_id, display in zip(values, row_ids, displays, strict=True):
        if labels and row_id - 1 not in row_ids:
            labels.append("⋮")
            spaced.append(np.full_like(row, np.nan))
        labels.append(f"{display}  {row_id}{'  ▶' if row_id in looked_up else ''}")
        spaced.append(row)
    return heat_map(
        spaced,
        rows=Axis(say("embeddings.rows_axis"), labels),
        columns=Axis(say("dimension_axis", n=values.shape[1])),
        hover=style.lines(say("embeddings.row", row="%{y}"), say("dimension", dimension="%{x}")),
        value=say("names.value"),
        height=style.rows_height(len(labels)),
        gap=1,
    )
