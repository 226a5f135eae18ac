"""What does a head do on the whole? Where the strongest weight of every row falls, and examples of every strength.

The strongest activations say nothing about all the others ("An Interpretability Illusion for BERT", Bolukbasi et al.
2021). So here every row of every sentence counts: the place of its strongest weight is put into one of a few kinds that
exclude each other, beside how often attention without a preference would fall there; and examples are drawn at random,
from each kind and from ten intervals of the strongest weight, the rare ones named as rare. What a head does in most
rows can then be told with the rows in which it does something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from transformer.explanation.firing_examples import ROWS, Firing, Progress, head_rows, read_batches
from transformer.files.checkpoints import Checkpoint
from transformer.roles.places import diagonal_band
from transformer.runs.attention_view import stands_alone
from transformer.runs.head_places import Head, attention_layers
from transformer.runs.readings import BATCH_SIZE
from transformer.text.tokens import TokenSequence

# In this order: a place belongs to the first kind that holds for it. The key is …
SELF_KINDS = (
    "special",  # a special token
    "itself",  # the query's own token
    "previous",  # one before it
    "next",  # one behind it
    "same",  # the same token elsewhere
    "after_same",  # the token that followed the same token elsewhere: what an induction head looks for
    "punctuation",  # punctuation that stands by itself
    "near",  # two or three tokens away
    "left",  # farther to the left
    "right",  # farther to the right
)
CROSS_KINDS = (
    "special",
    "line",  # at most one token off the straight line through both sentences
    "punctuation",
    "left",  # before that line
    "right",  # behind it
)
N_INTERVALS = 10
N_EXAMPLES = 3
RARE = 0.01  # of all rows: an interval with less is said to be rare


@dataclass(frozen=True, eq=False)
class Habit:
    """One kind of place. ``share`` of the rows whose strongest weight falls on it; ``chance``: the share that a key
    drawn evenly from those allowed would have; ``halves``: the share in every other sentence, and in the rest."""

    kind: str
    share: float
    chance: float
    halves: tuple[float, float]
    examples: tuple[Firing, ...]


@dataclass(frozen=True, eq=False)
class Interval:
    """The rows whose strongest weight lies in [``low``, ``high``), of the last interval 1 as well; ``share`` of all
    rows; ``examples`` drawn from them at random."""

    low: float
    high: float
    share: float
    examples: tuple[Firing, ...]

    @property
    def is_rare(self) -> bool:
        return 0 < self.share < RARE


@dataclass(frozen=True, eq=False)
class HeadHabits:
    """Of one head over ``n_rows`` rows in ``n_sentences`` sentences. ``habits``: all kinds of place, their shares sum
    to 1; ``strongest``: the mean of the rows' strongest weights."""

    head: Head
    n_rows: int
    n_sentences: int
    rows_in_halves: tuple[int, int]
    strongest: float
    habits: tuple[Habit, ...]
    intervals: tuple[Interval, ...]

    @property
    def main(self) -> Habit:
        """The kind that the head prefers most: the largest share above chance."""
        return max(self.habits, key=lambda habit: habit.share - habit.chance)

    @property
    def against(self) -> Habit | None:
        """What the other rows do most often; ``None`` where there are none."""
        others = [habit for habit in self.habits if habit is not self.main and habit.share > 0]
        return max(others, key=lambda habit: habit.share, default=None)

    @property
    def is_stable(self) -> bool:
        """Whether the main kind's share differs between the two halves by no more than two standard errors."""
        (first, second), (n, m) = self.main.halves, self.rows_in_halves
        if not n or not m:
            return False
        error = math.sqrt(max(self.main.share * (1 - self.main.share), 1e-12) * (1 / n + 1 / m))
        return abs(first - second) <= 2 * error


def head_habits(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    *,
    batch_size: int = BATCH_SIZE,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[Head, HeadHabits]:
    """Read the sentences once, and count for every head of the model.

    A row counts when its query is a token of the text and it has at least two keys to choose from. ``seed``: of the
    draw of examples. ``progress`` and errors as in ``head_firings``; a head without a row is not in the answer.
    """
    counts: dict[tuple, _Counts] = {}
    for batch in read_batches(checkpoint, sentences, batch_size=batch_size, parts=ROWS, progress=progress):
        for row, index in enumerate(batch.indices):
            kinds: dict[tuple[str, str], np.ndarray] = {}
            for stack, kind, layer in attention_layers(checkpoint.config):
                asked, read, weights, allowed = head_rows(batch, stack, kind, layer, row)
                if (stack, kind) not in kinds:
                    kinds[stack, kind] = places(asked, read, cross=kind == "cross")
                place = (stack, kind, layer)
                if place not in counts:
                    counts[place] = _Counts(len(weights), CROSS_KINDS if kind == "cross" else SELF_KINDS)
                draw = np.random.default_rng((seed, index)).random(len(asked))
                counts[place].add(index, asked, read, weights, allowed, kinds[stack, kind], draw)
    found = {}
    for (stack, kind, layer), counted in counts.items():
        for head, habits in counted.heads(stack, kind, layer):
            found[head] = habits
    return found


def places(asked: TokenSequence, read: TokenSequence, *, cross: bool) -> np.ndarray:
    """[query, key]: the kind of every pair of tokens, as an index of ``SELF_KINDS`` or ``CROSS_KINDS``."""
    queries, keys = np.arange(len(asked))[:, None], np.arange(len(read))[None, :]
    special = np.array([token.special for token in read])[None, :]
    marks = np.array([stands_alone(read, token.index) for token in read])[None, :]
    if cross:
        real = [sum(not token.is_padding for token in tokens) for tokens in (asked, read)]
        line = np.zeros((len(asked), len(read)), dtype=bool)
        line[: real[0], : real[1]] = diagonal_band(*real)
        before = np.cumsum(line, axis=1) == 0
        tests = {"special": special, "line": line, "punctuation": marks, "left": before, "right": ~before}
        names = CROSS_KINDS
    else:
        ids = np.array(read.ids)
        same = ids[:, None] == ids[None, :]
        after_same = np.zeros_like(same)
        after_same[:, 1:] = same[:, :-1]
        tests = {
            "special": special,
            "itself": keys == queries,
            "previous": keys == queries - 1,
            "next": keys == queries + 1,
            "same": same,
            "after_same": after_same,
            "punctuation": marks,
            "near": np.abs(keys - queries) <= 3,
            "left": keys < queries,
            "right": keys > queries,
        }
        names = SELF_KINDS
    shape = (len(asked), len(read))
    return np.select([np.broadcast_to(tests[name], shape) for name in names], range(len(names)))


class _Counts:
    """What one attention layer has done so far."""

    def __init__(self, n_heads: int, kinds: Sequence[str]) -> None:
        self.kinds = tuple(kinds)
        shape = (n_heads, len(self.kinds), 2)
        self.hits = np.zeros(shape, dtype=int)  # [head, kind, half]
        self.chance = np.zeros(len(self.kinds))  # [kind], summed over rows
        self.rows = np.zeros(2, dtype=int)  # [half]
        self.in_interval = np.zeros((n_heads, N_INTERVALS), dtype=int)
        self.strongest = np.zeros(n_heads)
        self.sentences: set[int] = set()
        self.samples = _Samples(n_heads, len(self.kinds) + N_INTERVALS)

    def add(
        self,
        index: int,
        asked: TokenSequence,
        read: TokenSequence,
        weights: np.ndarray,  # [head, query, key]
        allowed: np.ndarray,  # [query, key]
        kinds: np.ndarray,  # [query, key]
        draw: np.ndarray,  # [query]
    ) -> None:
        text = np.array([not token.special for token in asked])
        counted = np.flatnonzero(text & (allowed.sum(axis=1) > 1))
        if not len(counted):
            return
        heads = np.arange(len(weights))[:, None]
        best = np.where(allowed, weights, -1.0)[:, counted].argmax(axis=-1)  # [head, row]
        largest = weights[heads, counted, best]
        kind = kinds[counted, best]  # [head, row]
        interval = np.clip((largest * N_INTERVALS).astype(int), 0, N_INTERVALS - 1)
        half = index % 2
        np.add.at(self.hits, (np.broadcast_to(heads, kind.shape), kind, half), 1)
        np.add.at(self.in_interval, (np.broadcast_to(heads, kind.shape), interval), 1)
        for number in range(len(self.kinds)):
            of_kind = ((kinds == number) & allowed)[counted].sum(axis=1)
            self.chance[number] += (of_kind / allowed[counted].sum(axis=1)).sum()
        self.rows[half] += len(counted)
        self.strongest += largest.sum(axis=1)
        self.sentences.add(index)

        def firing(head: int, at: int) -> Firing:
            query, key = int(counted[at]), int(best[head, at])
            strip = weights[head, query].copy()
            return Firing(float(strip[key]), index, query, key, asked, read, strip)

        self.samples.offer(kind, draw[counted], firing)
        self.samples.offer(len(self.kinds) + interval, draw[counted], firing)

    def heads(self, stack: str, kind: str, layer: int) -> Iterator[tuple[Head, HeadHabits]]:
        n_rows = int(self.rows.sum())
        if not n_rows:
            return
        for head in range(len(self.hits)):
            habits = tuple(
                Habit(
                    name,
                    float(self.hits[head, number].sum() / n_rows),
                    float(self.chance[number] / n_rows),
                    tuple(
                        float(hits / max(1, rows))
                        for hits, rows in zip(self.hits[head, number], self.rows, strict=True)
                    ),
                    self.samples.of(head, number),
                )
                for number, name in enumerate(self.kinds)
            )
            intervals = tuple(
                Interval(
                    place / N_INTERVALS,
                    (place + 1) / N_INTERVALS,
                    float(self.in_interval[head, place] / n_rows),
                    self.samples.of(head, len(self.kinds) + place),
                )
                for place in range(N_INTERVALS)
            )
            name = Head(stack, kind, layer, head)
            mean = float(self.strongest[head] / n_rows)
            halves = (int(self.rows[0]), int(self.rows[1]))
            yield name, HeadHabits(name, n_rows, len(self.sentences), halves, mean, habits, intervals)


class _Samples:
    """For every head and bucket the ``N_EXAMPLES`` rows with the smallest random numbers: each row is as likely as any
    other, in whatever order they come."""

    def __init__(self, n_heads: int, n_buckets: int) -> None:
        self.kept: dict[tuple[int, int], list[tuple[float, Firing]]] = {}
        self.limit = np.full((n_heads, n_buckets), np.inf)  # a larger number is not kept

    def offer(self, buckets: np.ndarray, draw: np.ndarray, firing) -> None:
        """``buckets`` [head, row]: into which bucket each row falls; ``draw`` [row]."""
        heads = np.arange(len(buckets))[:, None]
        for head, at in np.argwhere(draw[None, :] < self.limit[heads, buckets]):
            bucket = int(buckets[head, at])
            if draw[at] >= self.limit[head, bucket]:  # the limit has sunk meanwhile
                continue
            kept = self.kept.setdefault((int(head), bucket), [])
            kept.append((float(draw[at]), firing(int(head), int(at))))
            kept.sort(key=lambda one: one[0])
            del kept[N_EXAMPLES:]
            if len(kept) == N_EXAMPLES:
                self.limit[head, bucket] = kept[-1][0]

    def of(self, head: int, bucket: int) -> tuple[Firing, ...]:
        return tuple(firing for _, firing in self.kept.get((head, bucket), ()))
