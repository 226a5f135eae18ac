"""A painted pattern, and all heads ranked by it, as one value. No Streamlit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from transformer.heads.painted_pattern import PatternScore, known_patterns, pattern_scores
from transformer.runs.attention_view import AttentionView

BLANK = "blank"


@dataclass(frozen=True)
class PaintedHeads:
    """The heads of one kind of attention under a pattern.

    Attributes:
        views: One view for each layer.
        start: The pattern that the strokes change: one of ``known``.
        painted: Whether each painted cell, (query, key), is in the pattern; cells that do not exist have no effect.
    """

    views: Sequence[AttentionView] = field(repr=False)
    start: str = BLANK
    painted: Mapping[tuple[int, int], bool] = field(default_factory=dict)

    @cached_property
    def known(self) -> dict[str, np.ndarray]:
        """The ready patterns, each [query, key], the blank one last."""
        return {**known_patterns(self.views), BLANK: np.zeros_like(self.views[0].allowed)}

    @cached_property
    def cells(self) -> np.ndarray:
        """The pattern, [query, key]."""
        cells = self.known.get(self.start, self.known[BLANK]).copy()
        n_queries, n_keys = cells.shape
        for (query, key), is_on in self.painted.items():
            if query < n_queries and key < n_keys:
                cells[query, key] = is_on
        return cells

    @cached_property
    def ranked(self) -> tuple[PatternScore, ...]:
        """All heads, the largest score first."""
        return pattern_scores(self.views, self.cells)
