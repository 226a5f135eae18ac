"""What each head does over many sentences, with examples.

The strongest activations show nothing about all others ("An Interpretability Illusion for BERT", Bolukbasi et al.
2021). So every row of every sentence counts: the position of its strongest weight is assigned to one of a few exclusive
kinds, and its frequency is compared with that of attention without a preference. Examples are drawn at random from each
kind, so that what a head does in most rows is shown together with the rows in which it does something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.heads.firing_examples import RowExample
from transformer.heads.weight_patterns import patterns, word_rows
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.runs.readings import Progress, readings
from transformer.text.tokens import TokenSequence

# In this order: a position belongs to the first kind that applies. The key is …
SELF_KINDS = (
    "special",  # a special token
    "itself",  # the query's own token
    "previous",  # the token before the query
    "next",  # the token after the query
    "same",  # the same token elsewhere
    "after_same",  # the token after an earlier occurrence of the same token: what an induction head attends to
    "punctuation",  # separate punctuation
    "near",  # two or three tokens away
    "left",  # further to the left
    "right",  # further to the right
)
CROSS_KINDS = (
    "special",
    "line",  # at most one token off the straight line through both sentences
    "punctuation",
    "before",  # a token before that line
    "behind",  # a token after that line
)
N_EXAMPLES = 3
BATCH_SIZE = 8  # sentences; small, so that a click on "stop" takes effect soon


@dataclass(frozen=True, eq=False)
class Habit:
    """One kind of position.

    Attributes:
        share: Share of the rows whose strongest weight is at this kind of position.
        chance: The share that a randomly drawn allowed key would have.
        halves: The share in every other sentence, and in the rest.
        error: Standard error of the difference of ``halves`` (``halves_of``).
        examples: Rows drawn at random, with their strongest weight.
    """

    kind: str
    share: float
    chance: float
    halves: tuple[float, float]
    error: float
    examples: tuple[RowExample, ...]


@dataclass(frozen=True, eq=False)
class HeadHabits:
    """One head over ``n_rows`` rows in ``n_sentences`` sentences; the shares of all ``habits`` sum to 1."""

    head: Head
    n_rows: int
    n_sentences: int
    habits: tuple[Habit, ...]

    @property
    def main(self) -> Habit:
        """Kind of position that the head prefers most: the largest share above chance."""
        return max(self.habits, key=lambda habit: habit.share - habit.chance)

    @property
    def against(self) -> Habit | None:
        """Most frequent kind of position besides the main one; ``None`` if there is none."""
        others = [habit for habit in self.habits if habit is not self.main and habit.share > 0]
        return max(others, key=lambda habit: habit.share, default=None)

    @property
    def is_stable(self) -> bool:
        """Whether the main kind's share differs between the halves by at most two standard errors."""
        first, second = self.main.halves
        return abs(first - second) <= 2 * self.main.error + 1e-9  # rounding


def head_habits(
    checkpoint: Checkpoint, sentences: Sequence[str], *, batch_size: int = BATCH_SIZE, progress: Progress | None = None
) -> dict[Head, HeadHabits]:
    """Read the sentences once and return the habits of every head of the model.

    A row counts if its query is a token of the text and it may attend to at least two keys. A head without such a row
    is not in the result. For the arguments and errors see ``transformer.runs.readings``.
    """
    layers: dict[tuple[str, str, int], list[_Strongest]] = {}
    for reading in readings(checkpoint, sentences, batch_size=batch_size, progress=progress):
        kinds: dict[tuple[str, str], np.ndarray] = {}
        for view in reading.views:
            if (place := (view.stack, view.kind)) not in kinds:
                kinds[place] = kinds_of_pairs(view.query, view.key, cross=view.kind == "cross")
            if word_rows(view).any():
                strongest = _strongest(view, reading.index, kinds[place])
                layers.setdefault((*place, view.layer), []).append(strongest)
    return {habits.head: habits for place, sentences in layers.items() for habits in _habits(place, sentences)}


def kinds_of_pairs(asked: TokenSequence, read: TokenSequence, *, cross: bool) -> np.ndarray:
    """Return the kind of every pair of tokens, [query, key], as an index of the list of kinds."""
    cells = patterns(asked, read, cross=cross)
    tests = {"special": cells["sink"], "punctuation": cells["punctuation"]}
    if cross:
        before = np.cumsum(cells["diagonal"], axis=1) == 0
        tests |= {"line": cells["diagonal"], "before": before, "behind": ~before}
    else:
        distance = np.arange(len(read))[None, :] - np.arange(len(asked))[:, None]
        tests |= {
            "itself": cells["same"],
            "previous": cells["previous"],
            "next": cells["next"],
            "same": cells["repeated"],
            "after_same": cells["after_repeated"],
            "near": np.abs(distance) <= 3,
            "left": distance < 0,
            "right": distance > 0,
        }
    names = CROSS_KINDS if cross else SELF_KINDS
    shape = (len(asked), len(read))
    return np.select([np.broadcast_to(tests[name], shape) for name in names], range(len(names)))


def halves_of(hits: np.ndarray, rows: np.ndarray, half: np.ndarray) -> tuple[tuple[float, float], float]:
    """Return the share of ``hits`` among ``rows`` in each half of the sentences, and the error.

    Both are counts per sentence. The rows of one sentence are similar, so the sentences are what varies (Cochran 1977,
    "Sampling Techniques", §2.11, the ratio of two counts): a half of k sentences with H hits in N rows has the share p
    = H / N with the variance k/(k−1) Σ (h − p n)² / N² over its sentences. The standard error is NaN if a half has
    fewer than two.
    """
    shares, variance = [], 0.0
    for which in (0, 1):
        own, of = hits[half == which], rows[half == which]
        k, total = len(of), max(1, int(of.sum()))
        share = float(own.sum() / total)
        variance += k / (k - 1) * float(((own - share * of) ** 2).sum()) / total**2 if k > 1 else math.nan
        shares.append(share)
    return (shares[0], shares[1]), math.sqrt(variance)


class _Strongest(NamedTuple):
    """The strongest weight in every counted row of one sentence, in one attention layer.

    Attributes:
        sentence: Index of the sentence.
        asked, read: Its tokens.
        rows: The counted rows, [row].
        draws: A random number for each; the rows with the smallest are the examples.
        keys: The key with the strongest weight, [head, row].
        weights: That weight, [head, row].
        kinds: The kind of that key, [head, row].
        chances: Sum over the rows of the share of the allowed keys that are of a kind, [kind].
    """

    sentence: int
    asked: TokenSequence
    read: TokenSequence
    rows: np.ndarray
    draws: np.ndarray
    keys: np.ndarray
    weights: np.ndarray
    kinds: np.ndarray
    chances: np.ndarray


def _strongest(view: AttentionView, sentence: int, kinds: np.ndarray) -> _Strongest:
    """Return the strongest weights of one sentence; ``kinds`` is [query, key]."""
    rows = np.flatnonzero(word_rows(view))
    keys = view.weights[:, rows].argmax(axis=-1)
    weights = np.take_along_axis(view.weights[:, rows], keys[..., None], axis=-1)[..., 0]
    draws = np.random.default_rng((0, sentence)).random(len(view.query))[rows]
    allowed = view.allowed[rows]
    numbers = np.arange(len(CROSS_KINDS if view.kind == "cross" else SELF_KINDS))
    of_kind = (kinds[rows, :, None] == numbers) & allowed[..., None]  # [row, key, kind]
    chances = (of_kind.sum(axis=1) / allowed.sum(axis=1, keepdims=True)).sum(axis=0)
    return _Strongest(sentence, view.query, view.key, rows, draws, keys, weights, kinds[rows, keys], chances)


def _habits(place: tuple[str, str, int], sentences: Sequence[_Strongest]) -> Iterator[HeadHabits]:
    """Yield the habits of every head of the attention layer at ``place``."""
    names = CROSS_KINDS if place[1] == "cross" else SELF_KINDS
    half, rows = np.array([(one.sentence % 2, len(one.rows)) for one in sentences]).T
    n_rows, starts, owner = int(rows.sum()), np.cumsum(rows) - rows, np.repeat(np.arange(len(rows)), rows)
    kinds = np.concatenate([one.kinds for one in sentences], axis=1)  # [head, row of all sentences]
    hits = np.add.reduceat((kinds[..., None] == np.arange(len(names))).astype(int), starts, axis=1)
    chances = sum(one.chances for one in sentences) / n_rows
    drawn = np.argsort(np.concatenate([one.draws for one in sentences]))

    def example(head: int, row: int) -> RowExample:
        one, at = sentences[owner[row]], row - starts[owner[row]]
        cell = one.sentence, int(one.rows[at]), int(one.keys[head, at])
        return RowExample(float(one.weights[head, at]), *cell, one.asked, one.read)

    for head in range(len(kinds)):
        habits = []
        for number, name in enumerate(names):
            own = hits[head, :, number]
            examples = drawn[kinds[head, drawn] == number][:N_EXAMPLES]
            shares = float(own.sum() / n_rows), float(chances[number]), *halves_of(own, rows, half)
            habits.append(Habit(name, *shares, tuple(example(head, row) for row in examples)))
        yield HeadHabits(Head(*place, head), n_rows, len(rows), tuple(habits))
