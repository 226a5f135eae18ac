"""What does a head do on the whole? Where the strongest weight of every row falls, and examples of every strength.

The strongest activations say nothing about all the others ("An Interpretability Illusion for BERT", Bolukbasi et al.
2021). So here every row of every sentence counts: the place of its strongest weight is put into one of a few kinds that
exclude each other, beside how often attention without a preference would fall there; and examples are drawn at random,
from each kind and from ten intervals of the strongest weight, the rare ones named as rare. What a head does in most
rows can then be told with the rows in which it does something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.heads.firing_examples import Example, Progress, read_batches
from transformer.heads.places import places_in
from transformer.heads.row_measures import LayerRows, RowMeasures
from transformer.runs.head_places import Head
from transformer.runs.recording_size import ALWAYS, allowed_bytes
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
    "before",  # before that line
    "behind",  # behind it
)
N_INTERVALS = 10
N_EXAMPLES = 3
BATCH = 8  # sentences: the logits of every token of a batch are in memory
RARE = 0.01  # of all rows: an interval with less is said to be rare


@dataclass(frozen=True, eq=False)
class Habit:
    """One kind of place. ``share`` of the rows whose strongest weight falls on it; ``chance``: the share that a key
    drawn evenly from those allowed would have; ``halves``: the share in every other sentence, and in the rest;
    ``error``: the standard error of their difference (``halves_of``)."""

    kind: str
    share: float
    chance: float
    halves: tuple[float, float]
    error: float
    examples: tuple[Example, ...]


@dataclass(frozen=True, eq=False)
class Interval:
    """The rows in which a measure lies in [``low``, ``high``), of the last interval ``high`` as well; ``share`` of all
    rows; ``examples`` drawn from them at random."""

    low: float
    high: float
    share: float
    examples: tuple[Example, ...]

    @property
    def is_rare(self) -> bool:
        return 0 < self.share < RARE


@dataclass(frozen=True, eq=False)
class HeadHabits:
    """Of one head over ``n_rows`` rows in ``n_sentences`` sentences. ``habits``: all kinds of place, their shares sum
    to 1. ``intervals``: by measure (``row_measures.MEASURES``), ten equal ones, of "weight" from 0 to 1, of the others
    from the least value that there was, at most 0, to the largest; ``means`` of the measures."""

    head: Head
    n_rows: int
    n_sentences: int
    habits: tuple[Habit, ...]
    intervals: Mapping[str, tuple[Interval, ...]]
    means: Mapping[str, float]

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
        first, second = self.main.halves
        return abs(first - second) <= 2 * self.main.error + 1e-9  # of rounding


def head_habits(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    *,
    batch_size: int = BATCH,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[Head, HeadHabits]:
    """Read the sentences once, and count for every head of the model.

    A row counts when its query is a token of the text and it has at least two keys to choose from. ``seed``: of the
    draw of examples. ``progress`` and errors as in ``head_firings``, and ``InputError`` for more rows than may
    be kept in memory; a head without a row is not in the answer.
    """
    measures = RowMeasures(checkpoint)
    layers: dict[tuple, _Layer] = {}
    for batch in read_batches(checkpoint, sentences, batch_size=batch_size, parts=measures.parts, progress=progress):
        for row, index in enumerate(batch.indices):
            kinds: dict[tuple[str, str], np.ndarray] = {}
            for rows in measures.of_sentence(batch, row):
                stack, kind, _ = rows.place
                if (stack, kind) not in kinds:
                    kinds[stack, kind] = places(rows.asked, rows.read, cross=kind == "cross")
                layers.setdefault(rows.place, _Layer()).add(index, rows, kinds[stack, kind], seed)
        _check_memory(layers.values())
    return {habits.head: habits for place, layer in layers.items() if layer.sentences for habits in layer.heads(*place)}


def places(asked: TokenSequence, read: TokenSequence, *, cross: bool) -> np.ndarray:
    """[query, key]: the kind of every pair of tokens, as an index of ``SELF_KINDS`` or ``CROSS_KINDS``."""
    of_roles = places_in(asked, read, cross=cross)
    tests = {"special": of_roles["sink"], "punctuation": of_roles["punctuation"]}
    if cross:
        before = np.cumsum(of_roles["diagonal"], axis=1) == 0
        tests |= {"line": of_roles["diagonal"], "before": before, "behind": ~before}
    else:
        distance = np.arange(len(read))[None, :] - np.arange(len(asked))[:, None]
        after_same = np.zeros_like(of_roles["repeated"])
        after_same[:, 1:] = (of_roles["repeated"] | of_roles["same"])[:, :-1]
        tests |= {
            "itself": of_roles["same"],
            "previous": of_roles["previous"],
            "next": of_roles["next"],
            "same": of_roles["repeated"],
            "after_same": after_same,
            "near": np.abs(distance) <= 3,
            "left": distance < 0,
            "right": distance > 0,
        }
    names = CROSS_KINDS if cross else SELF_KINDS
    shape = (len(asked), len(read))
    return np.select([np.broadcast_to(tests[name], shape) for name in names], range(len(names)))


def halves_of(hits: np.ndarray, rows: np.ndarray, half: np.ndarray) -> tuple[tuple[float, float], float]:
    """The share of ``hits`` among ``rows``, both counted by sentence, in the sentences of half 0 and of half 1; and the
    standard error of the difference of the two.

    The rows of one sentence are alike, so what varies is whole sentences (Cochran 1977, "Sampling Techniques", §2.11,
    the ratio of two counts): a half of k sentences with H hits in N rows has the share p = H / N with the variance
    k/(k−1) Σ (h − p n)² / N² over its sentences. NaN, where a half has fewer than two.
    """
    shares, variance = [], 0.0
    for which in (0, 1):
        own, of = hits[half == which], rows[half == which]
        k, total = len(of), max(1, int(of.sum()))
        share = float(own.sum() / total)
        variance += k / (k - 1) * float(((own - share * of) ** 2).sum()) / total**2 if k > 1 else math.nan
        shares.append(share)
    return (shares[0], shares[1]), math.sqrt(variance)


def _check_memory(layers: Iterable[_Layer]) -> None:
    """Before more is read: what is kept of all rows may take as much as one recorded pass."""
    kept = sum(layer.n_bytes for layer in layers)
    if kept > ALWAYS and kept > (most := allowed_bytes()):
        raise InputError(
            "What is kept of every row of these sentences takes more than {most} MB of memory, and no more is allowed. "
            "Give fewer or shorter sentences.",
            most=f"{most / 1e6:,.0f}",
        )


class _Layer:
    """What one attention layer has done so far: a column of numbers for every row, and only then the counts, because
    where the intervals of a measure end is known last."""

    def __init__(self) -> None:
        self.sentences: list[tuple[int, TokenSequence, TokenSequence]] = []
        self.n_rows = 0
        # "sentence", "query", "draw" [row]; the others [head, row]; with room for more rows behind ``n_rows``, in few
        # large pieces of memory: many small ones would keep apart what lies between them.
        self.columns: dict[str, np.ndarray] = {}
        self.chances: np.ndarray | float = 0.0  # [kind], summed over rows

    def add(self, index: int, rows: LayerRows, kinds: np.ndarray, seed: int) -> None:
        """One more sentence; ``kinds`` [query, key]."""
        text = np.array([not token.special for token in rows.asked])
        counted = np.flatnonzero(text & (rows.allowed.sum(axis=1) > 1))
        if not len(counted):
            return
        new = {
            "sentence": np.full(len(counted), len(self.sentences), dtype=np.int32),
            "query": counted,
            "draw": np.random.default_rng((seed, index)).random(len(rows.asked))[counted],
            "kind": kinds[counted, rows.measures["weight"].keys[:, counted]].astype(np.uint8),
        }
        for name, (values, keys) in rows.measures.items():
            new[name] = values[:, counted].astype(np.float32)
            new[f"{name} key"] = keys[:, counted].astype(np.uint16)
        for name, column in new.items():
            kept, end = self.columns.get(name, column[..., :0]), self.n_rows + len(counted)
            if end > kept.shape[-1]:
                grown = np.empty((*kept.shape[:-1], 2 * end), kept.dtype)
                grown[..., : self.n_rows] = kept[..., : self.n_rows]
                kept = self.columns[name] = grown
            kept[..., self.n_rows : end] = column
        self.n_rows += len(counted)
        allowed, names = rows.allowed[counted], CROSS_KINDS if rows.place[1] == "cross" else SELF_KINDS
        of_kind = np.stack([((kinds[counted] == number) & allowed).sum(axis=1) for number in range(len(names))])
        self.chances = self.chances + (of_kind / allowed.sum(axis=1)).sum(axis=1)
        self.sentences.append((index, rows.asked, rows.read))

    @property
    def n_bytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())

    def heads(self, stack: str, kind: str, layer: int) -> Iterator[HeadHabits]:
        columns = {name: column[..., : self.n_rows] for name, column in self.columns.items()}
        in_turn = np.argsort(columns.pop("draw"))  # each row is as likely as any other to come first
        half = np.array([index for index, _, _ in self.sentences]) % 2  # [sentence]
        n_rows, n_sentences = self.n_rows, len(self.sentences)
        rows = np.bincount(columns["sentence"], minlength=n_sentences)
        names = CROSS_KINDS if kind == "cross" else SELF_KINDS
        for head in range(len(columns["kind"])):
            own = {name: column if column.ndim == 1 else column[head] for name, column in columns.items()}
            places = own["kind"].astype(np.int64) * n_sentences + own["sentence"]
            hits = np.bincount(places, minlength=len(names) * n_sentences).reshape(-1, n_sentences)  # [kind, sentence]
            shown = self._examples(own, "weight", own["kind"], in_turn)
            habits = tuple(
                Habit(
                    name,
                    float(hits[number].sum() / n_rows),
                    float(self.chances[number] / n_rows),
                    *halves_of(hits[number], rows, half),
                    shown.get(number, ()),
                )
                for number, name in enumerate(names)
            )
            measured = [name for name in columns if f"{name} key" in columns]
            yield HeadHabits(
                Head(stack, kind, layer, head),
                n_rows,
                n_sentences,
                habits,
                {name: self._intervals(own, name, in_turn) for name in measured},
                {name: float(own[name].mean(dtype=np.float64)) for name in measured},
            )

    def _intervals(self, own: Mapping[str, np.ndarray], name: str, in_turn: np.ndarray) -> tuple[Interval, ...]:
        values = own[name]
        low = min(0.0, float(values.min()))
        high = 1.0 if name == "weight" else max(0.0, float(values.max()))
        high = high if high > low else 1.0  # a head whose part of W_O is 0 passes nothing on
        edges = np.linspace(low, high, N_INTERVALS + 1)
        place = np.clip(((values - low) * (N_INTERVALS / (high - low))).astype(int), 0, N_INTERVALS - 1)
        shares = np.bincount(place, minlength=N_INTERVALS) / len(values)
        shown = self._examples(own, name, place, in_turn)
        return tuple(
            Interval(float(edges[number]), float(edges[number + 1]), float(shares[number]), shown.get(number, ()))
            for number in range(N_INTERVALS)
        )

    def _examples(
        self, own: Mapping[str, np.ndarray], name: str, buckets: np.ndarray, in_turn: np.ndarray
    ) -> dict[int, tuple[Example, ...]]:
        """Of every bucket the ``N_EXAMPLES`` rows that come first ``in_turn``; ``buckets`` [row]: in which each is."""
        found: dict[int, tuple[Example, ...]] = {}
        for bucket in np.unique(buckets):
            rows = in_turn[buckets[in_turn] == bucket][:N_EXAMPLES]
            found[int(bucket)] = tuple(
                Example(
                    float(own[name][row]),
                    self.sentences[own["sentence"][row]][0],
                    int(own["query"][row]),
                    int(own[f"{name} key"][row]),
                    *self.sentences[own["sentence"][row]][1:],
                )
                for row in rows
            )
        return found
