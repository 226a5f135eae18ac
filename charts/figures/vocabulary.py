"""The vocabulary as a cloud of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array, require_ids, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import say

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence


def vocabulary_projection(
    coordinates: Any,
    *,
    displays: Sequence[str],
    tokens: TokenSequence,
    explained: tuple[float, float] | None = None,
) -> go.Figure:
    """Draw every row of E as a point in two dimensions, with the sentence's tokens marked and labelled.

    ``coordinates``: [vocabulary, 2], for example the first two principal components; ``displays``: the text of
    every token; ``explained``: share of the variance along each of the two axes, 0…1.
    """
    points = as_array(coordinates, name="coordinates", axes=("vocabulary", "component"), sizes={"component": 2})
    require_same_length("displays", displays, expected=len(points), of="points")
    require_ids(tokens, size=len(points))
    marked = list({token.id: token for token in tokens}.values())
    ids = np.array([token.id for token in marked])
    rest = np.ones(len(points), dtype=bool)
    rest[ids] = False
    figure = Sheet()
    figure.scatter(
        x=points[rest, 0],
        y=points[rest, 1],
        mode="markers",
        name=say("embeddings.all_other_tokens"),
        marker={"size": 4, "color": style.GRID},
        text=[style.escape(display) for display, kept in zip(displays, rest, strict=True) if kept],
        hovertemplate="%{text}<extra></extra>",
    )
    figure.scatter(
        x=points[ids, 0],
        y=points[ids, 1],
        mode="markers+text" if len(marked) <= style.MAX_LABELS else "markers",  # the others appear in the hover
        name=say("embeddings.sentence_tokens"),
        marker={"size": 11, "color": style.CHOSEN, "line": {"width": 1, "color": "white"}},
        text=[style.escape(token.display) for token in marked],
        textposition=_away_from_each_other(points[ids]),
        textfont={"size": style.TITLE_SIZE if len(marked) <= 15 else 12, "weight": "bold", "color": style.CHOSEN},
        customdata=ids,
        hovertemplate=(
            style.hover(
                say("embeddings.token_id", token="%{text}", id="%{customdata}"),
                f"%{{x:{style.EXACT}}}, %{{y:{style.EXACT}}}",
            )
        ),
    )
    style.finish(figure, height=560, top=36)
    titles = [say("embeddings.first_component"), say("embeddings.second_component")]
    if explained:
        shares = [style.percent_digits(share) for share in explained]
        titles = [
            say("embeddings.first_component_share", share=shares[0]),
            say("embeddings.second_component_share", share=shares[1]),
        ]
    figure.update_xaxes(title_text=titles[0], zeroline=False, constrain="domain")
    figure.update_yaxes(title_text=titles[1], zeroline=False, constrain="domain", scaleanchor="x", scaleratio=1)
    return figure.drawn()


def _away_from_each_other(points: np.ndarray) -> list[str]:
    """Return the side for the label of each point, away from its nearest neighbour."""
    sides = []
    for index, point in enumerate(points):
        others = np.delete(points, index, axis=0)
        if not len(others):
            sides.append("top center")
            continue
        across, up = point - others[np.argmin(((others - point) ** 2).sum(axis=1))]
        if abs(across) > abs(up):
            sides.append("middle right" if across > 0 else "middle left")
        else:
            sides.append("top center" if up >= 0 else "bottom center")
    return sides
