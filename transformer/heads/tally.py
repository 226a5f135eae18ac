"""Which rows of attention count, sums over them, and the measure that comes out: a score beside its chance level."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence

LEAST_ROWS_IN_ALL = 20  # over all sentences: fewer rows tell nothing


@dataclass(frozen=True)
class Measure:
    """How well one head does one job. ``score`` over ``rows`` rows (or arcs, or words); ``chance``: what attention
    without a preference scores; ``least``: the score from which the head has the job."""

    score: float
    chance: float
    least: float
    rows: int

    @property
    def strength(self) -> float:
        """How far it is on the way from chance to the threshold: (score − chance) / (least − chance). From 1 on the
        head has the job; 0 is chance."""
        way = self.least - self.chance
        return (self.score - self.chance) / way if way > 0 else 0.0

    @property
    def reached(self) -> bool:
        return self.rows >= LEAST_ROWS_IN_ALL and self.score >= self.least


@dataclass(frozen=True)
class Tally:
    """What was counted in some rows. ``total`` [head, place]; ``chance`` [place]: what the same rows would give to
    attention without a preference; ``rows`` [place]: how many rows were counted. Tallies of sentences add up."""

    total: np.ndarray
    chance: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, total: np.ndarray, chance: float, rows: int) -> "Tally":
        """Of one place; ``total`` [head]."""
        return cls(total[:, None], np.array([chance]), np.array([rows]))

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.total + other.total, self.chance + other.chance, self.rows + other.rows)

    @property
    def shares(self) -> np.ndarray:
        """[head, place]: the mean over the rows, NaN where there was none."""
        return self.total / np.where(self.rows > 0, self.rows, np.nan)

    @property
    def chances(self) -> np.ndarray:
        """[place]."""
        return self.chance / np.where(self.rows > 0, self.rows, np.nan)

    def measure(self, head: int, least: float, *, place: int = 0) -> Measure:
        return Measure(float(self.shares[head, place]), float(self.chances[place]), least, int(self.rows[place]))


Tallies = Mapping[str, Tally]


def added(one: Tallies, other: Tallies) -> dict[str, Tally]:
    """Tallies by name; a name that one of them lacks keeps what the other has."""
    names = dict.fromkeys((*one, *other))
    return {name: one[name] + other[name] if name in one and name in other else (one | other)[name] for name in names}


def counted_rows(view: AttentionView) -> np.ndarray:
    """[query], ``True`` for rows that have a choice: at least two keys allowed, and the query is not padding."""
    return ~padding_tokens(view.query) & (view.allowed.sum(axis=1) >= 2)


def word_rows(view: AttentionView) -> np.ndarray:
    """[query], ``True`` for the ``counted_rows`` whose query is a token of the text."""
    return counted_rows(view) & ~special_tokens(view.query)


def keys_allowed(view: AttentionView) -> np.ndarray:
    """[query]: how many keys a row may look at, at least 1, for a division."""
    return np.maximum(view.allowed.sum(axis=1), 1)


def evenly(view: AttentionView) -> np.ndarray:
    """[query, key]: attention without a preference, spread evenly over what may be looked at."""
    return view.allowed / keys_allowed(view)[:, None]


def is_causal(view: AttentionView) -> bool:
    """Whether no row may look at what comes after it."""
    return view.kind == "self" and not np.triu(view.allowed, 1).any()


def special_tokens(tokens: TokenSequence) -> np.ndarray:
    return np.array([token.special for token in tokens], dtype=bool)


def padding_tokens(tokens: TokenSequence) -> np.ndarray:
    return np.array([token.is_padding for token in tokens], dtype=bool)
