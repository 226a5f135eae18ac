"""Heads ranked by a pattern of cells: one that a reader has painted, or that of a known role.

The score of a head is the mean share of a row that falls on the pattern P, over the rows R that can show it:

    score = 1/|R| · Σ_{i in R} Σ_{j : (i,j) in P} α_ij

R are the rows with at least one allowed cell in P and at least two allowed keys; rows of padding do not count. Chance
is the score of attention that is spread evenly over the allowed keys. For neighbours, the token itself and repeated
tokens, the score is that of the role in one sentence (``place_shares``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.heads.induction import followers
from transformer.heads.weight_patterns import counted_rows, places_of, share_of
from transformer.runs.attention_view import AttentionView


@dataclass(frozen=True)
class PatternScore:
    """How much of one head's attention falls on a pattern.

    Attributes:
        score: Mean share of a row, 0…1; NaN if no row can show the pattern.
        chance: Score of evenly spread attention under the same mask.
        rows: The number of rows that count.
    """

    layer: int
    head: int
    score: float
    chance: float
    rows: int


def known_patterns(views: Sequence[AttentionView]) -> dict[str, np.ndarray]:
    """Return the allowed cells of every role that is defined by position, [query, key].

    A cell is allowed if one of the layers allows it. Roles without a cell in this sentence, such as repeated tokens,
    are left out.
    """
    view = views[0]
    mask = np.any([one.allowed for one in views], axis=0)
    found = places_of(view)
    if view.kind == "self":
        found["induction"] = followers(view)
    allowed = {name: cells & mask for name, cells in found.items()}
    return {name: cells for name, cells in allowed.items() if cells.any()}


def pattern_scores(views: Sequence[AttentionView], pattern: np.ndarray) -> tuple[PatternScore, ...]:
    """Return the score of every head of ``views`` for ``pattern`` [query, key], the largest first.

    Raises:
        ValueError: If the pattern and a view differ in shape.
    """
    found = []
    for view in views:
        if pattern.shape != view.allowed.shape:
            raise ValueError(f"{view.name} has {view.allowed.shape} cells but the pattern has {pattern.shape}")
        cells = pattern & view.allowed
        tally = share_of(view, cells, cells.any(axis=1) & counted_rows(view))
        chance, rows = float(tally.chances[0]), int(tally.rows[0])
        found += [
            PatternScore(view.layer, head, float(score), chance, rows) for head, score in enumerate(tally.shares[:, 0])
        ]
    return tuple(sorted(found, key=lambda one: (np.isnan(one.score), -one.score)))
