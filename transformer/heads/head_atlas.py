"""What each head does over many sentences, with examples.

The strongest activations show nothing about all others ("An Interpretability Illusion for BERT", Bolukbasi et al.
2021). So every row of every sentence counts: the position of its strongest weight is assigned to one of a few exclusive
kinds, compared with how often attention without a preference would fall there. Examples are drawn at random from each
kind and from ten intervals of the strongest weight. So what a head does in most rows is shown together with the rows in
which it does something else.

Every row has three measures:

- "weight": the largest α of the row.
- "passed": the largest ‖α f(x)‖ (Kobayashi et al. 2020), in units of the residual stream. A large weight on a short
  value contributes little.
- "effect": the direct effect on the prediction, in logits (Elhage et al. 2021): what the head added at this row to
  logit(word) − logit(alternative), where the word is the most likely one there (in a classifier the class of the
  sentence). It is summed over all keys; the key is the one with the largest contribution. Only for the stack that words
  are predicted from.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from transformer.attention_maps.attention_path import output_matrices
from transformer.attribution.direct_logit_attribution import Question, Walk, last_step, read_out
from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.heads.firing_examples import ROWS, Progress, RowExample, head_rows, read_batches
from transformer.heads.weight_patterns import patterns
from transformer.models import FirstTokenClassifier
from transformer.predictions.lens import lens_stack
from transformer.runs.head_places import Head, attention_layers
from transformer.runs.readings import Recorded
from transformer.runs.recording_size import ALWAYS, allowed_bytes
from transformer.text.tokens import TokenSequence

MEASURES = ("weight", "passed", "effect")


class RowValues(NamedTuple):
    """One measure of one attention layer in one sentence.

    ``values`` are [head, query], and ``keys`` the key that each value belongs to, [head, query].
    """

    values: np.ndarray
    keys: np.ndarray


class LayerRows(NamedTuple):
    """One attention layer (stack, kind, layer) in one sentence; ``allowed`` is [query, key]."""

    place: tuple[str, str, int]
    asked: TokenSequence
    read: TokenSequence
    allowed: np.ndarray
    measures: Mapping[str, RowValues]


class RowMeasures:
    """Measures of a checkpoint's heads; ``parts`` are the probes that a batch must record for them."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.stack = checkpoint, lens_stack(checkpoint)
        model = checkpoint.model
        self.parts: Collection[str] = {*ROWS, "value", "std", "mean_square", read_out(model, self.stack)}
        # For each attention layer, W_O W_Oᵀ of every head, [head, channel, channel]: ‖v W_O‖² = v W_O W_Oᵀ vᵀ.
        self.lengths = {}
        for place in attention_layers(checkpoint.config):
            stack, kind, layer = place
            matrices, _ = output_matrices(checkpoint, stack, layer, kind)
            self.lengths[place] = matrices @ matrices.transpose(0, 2, 1)

    def of_sentence(self, batch: Recorded, row: int) -> Iterator[LayerRows]:
        """Yield every attention layer in the sentence ``row`` of a batch."""
        readings = self._readings(batch, row)
        for place, squares in self.lengths.items():
            stack, kind, layer = place
            asked, read, weights, allowed = head_rows(batch, stack, kind, layer, row)
            name = f"{stack}.layers.{layer}.{kind}_attention"
            values = _array(batch, f"{name}.value", row)[:, : len(read)]  # [head, key, channel]
            lengths = np.sqrt(np.maximum(((values @ squares) * values).sum(axis=-1), 0.0))
            found = {"weight": _largest(weights), "passed": _largest(weights * lengths[:, None])}
            if name in readings:
                shares = weights * (readings[name] @ values.transpose(0, 2, 1))  # [head, query, key]
                total = shares.sum(axis=-1)
                keys = (shares * np.where(total < 0, -1, 1)[..., None]).argmax(axis=-1)
                found["effect"] = RowValues(total, keys)
            yield LayerRows(place, asked, read, allowed, found)

    def _readings(self, batch: Recorded, row: int) -> Mapping[str, np.ndarray]:
        """Return, by attention, what its context is multiplied by to give logits: [head, query, channel]."""
        model, stack = self.checkpoint.model, self.stack
        if isinstance(getattr(model, "classifier", None), FirstTokenClassifier):
            return {}  # only the first row of a text is used for the class
        given = batch.logits[row].numpy(force=True)
        n_rows = len(batch.tokens[stack][row])

        def values(name: str) -> np.ndarray:
            return given if name.endswith(".logits") else _array(batch, name, row)

        def direction(*rows: int, position: int | None) -> np.ndarray:
            logits = torch.from_numpy(given if position is None else given[position])
            word, other = logits.topk(2).indices.tolist()
            return last_step(model, values, Question(stack, position, rows, word, other)).direction

        if self.checkpoint.config.n_classes:
            directions = direction(*range(n_rows), position=None)
        else:
            directions = np.concatenate([direction(place, position=place) for place in range(n_rows)])
        walk = _Readings(values, model.get_submodule(stack), stack, list(range(n_rows)), directions)
        of_heads = {name: read for name, read in walk.readings.items() if name.endswith("attention")}
        return {name: read.transpose(1, 0, 2).astype(np.float32) for name, read in of_heads.items()}


class _Readings(Walk):
    """Walk back through the layers without their outputs, which then need not be recorded."""

    def added(self, name: str, read: np.ndarray) -> np.ndarray:
        return np.zeros(read.shape[1])

    def product(self, name: str, direction: np.ndarray) -> float:
        return 0.0


def _array(batch: Recorded, name: str, row: int) -> np.ndarray:
    return batch.recording.tensors[name][row].numpy(force=True)


def _largest(values: np.ndarray) -> RowValues:
    keys = values.argmax(axis=-1)
    return RowValues(np.take_along_axis(values, keys[..., None], axis=-1)[..., 0], keys)


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
N_INTERVALS = 10
N_EXAMPLES = 3
BATCH = 8  # sentences; the logits of every token of a batch are in memory


@dataclass(frozen=True, eq=False)
class Habit:
    """One kind of position.

    Attributes:
        share: Share of the rows whose strongest weight is at this kind of position.
        chance: The share that a randomly drawn allowed key would have.
        halves: The share in every other sentence, and in the rest.
        error: Standard error of the difference of ``halves`` (``halves_of``).
    """

    kind: str
    share: float
    chance: float
    halves: tuple[float, float]
    error: float
    examples: tuple[RowExample, ...]


@dataclass(frozen=True, eq=False)
class Interval:
    """Rows whose measure is in [``low``, ``high``), in the last interval including ``high``.

    ``share`` is their share of all rows; ``examples`` are drawn from them at random.
    """

    low: float
    high: float
    share: float
    examples: tuple[RowExample, ...]


@dataclass(frozen=True, eq=False)
class HeadHabits:
    """One head over ``n_rows`` rows in ``n_sentences`` sentences.

    Attributes:
        habits: All kinds of position; their shares sum to 1.
        intervals: By measure (``row_measures.MEASURES``), ten equal intervals: of "weight" from 0 to 1, of the others
            from the smallest value, at most 0, to the largest.
        means: Means of the measures.
    """

    head: Head
    n_rows: int
    n_sentences: int
    habits: tuple[Habit, ...]
    intervals: Mapping[str, tuple[Interval, ...]]
    means: Mapping[str, float]

    @property
    def main(self) -> Habit:
        """Kind of position that the head prefers most: the largest share above chance."""
        return max(self.habits, key=lambda habit: habit.share - habit.chance)

    @property
    def against(self) -> Habit | None:
        """Most frequent other kind of position; ``None`` if there is none."""
        others = [habit for habit in self.habits if habit is not self.main and habit.share > 0]
        return max(others, key=lambda habit: habit.share, default=None)

    @property
    def is_stable(self) -> bool:
        """Whether the main kind's share differs between the halves by at most two standard errors."""
        first, second = self.main.halves
        return abs(first - second) <= 2 * self.main.error + 1e-9  # rounding


def head_habits(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    *,
    batch_size: int = BATCH,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[Head, HeadHabits]:
    """Read the sentences once and return the habits of every head of the model.

    A row counts if its query is a token of the text and it may attend to at least two keys. A head without such a row
    is not in the result.

    Args:
        checkpoint: The model.
        sentences: Sentences to read.
        batch_size: Largest number of sentences in a batch.
        seed: Seed for drawing examples.
        progress: As in ``head_firings``.

    Raises:
        InputError: If no sentence can be read, or there are more rows than fit into the allowed memory.
    """
    measures = RowMeasures(checkpoint)
    layers: dict[tuple, _Layer] = {}
    for batch in read_batches(checkpoint, sentences, batch_size=batch_size, parts=measures.parts, progress=progress):
        for row, index in enumerate(batch.indices):
            kinds: dict[tuple[str, str], np.ndarray] = {}
            for rows in measures.of_sentence(batch, row):
                stack, kind, _ = rows.place
                if (stack, kind) not in kinds:
                    kinds[stack, kind] = kinds_of_pairs(rows.asked, rows.read, cross=kind == "cross")
                layers.setdefault(rows.place, _Layer()).add(index, rows, kinds[stack, kind], seed)
        _check_memory(layers.values())
    return {habits.head: habits for place, layer in layers.items() if layer.sentences for habits in layer.heads(*place)}


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


def _check_memory(layers: Iterable[_Layer]) -> None:
    """Check, before reading on, that the rows kept take no more memory than one recorded pass may."""
    kept = sum(layer.n_bytes for layer in layers)
    if kept > ALWAYS and kept > (most := allowed_bytes()):
        raise InputError(
            f"The recorded rows of these sentences take more than {most / 1e6:,.0f} MB of memory, which "
            "is the limit. Use fewer or shorter sentences."
        )


class _Layer:
    """Rows of one attention layer so far: one column of numbers per row.

    They are counted only at the end, because the intervals of a measure depend on its largest value.
    """

    def __init__(self) -> None:
        self.sentences: list[tuple[int, TokenSequence, TokenSequence]] = []
        self.n_rows = 0
        # "sentence", "query", "draw" are [row]; the others [head, row]. Arrays grow in few large steps, because many
        # small ones would fragment the memory.
        self.columns: dict[str, np.ndarray] = {}
        self.chances: np.ndarray | float = 0.0  # [kind], summed over rows

    def add(self, index: int, rows: LayerRows, kinds: np.ndarray, seed: int) -> None:
        """Add one sentence; ``kinds`` is [query, key]."""
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
        """Size of the columns in bytes."""
        return sum(column.nbytes for column in self.columns.values())

    def heads(self, stack: str, kind: str, layer: int) -> Iterator[HeadHabits]:
        """Yield the habits of every head of the layer."""
        columns = {name: column[..., : self.n_rows] for name, column in self.columns.items()}
        in_turn = np.argsort(columns.pop("draw"))  # a random order in which each row is equally likely to come first
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
        high = high if high > low else 1.0  # a head whose part of W_O is 0 contributes nothing
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
    ) -> dict[int, tuple[RowExample, ...]]:
        """Return the first ``N_EXAMPLES`` rows of ``in_turn`` for every bucket.

        ``buckets`` [row] assigns rows to buckets.
        """
        found: dict[int, tuple[RowExample, ...]] = {}
        for bucket in np.unique(buckets):
            rows = in_turn[buckets[in_turn] == bucket][:N_EXAMPLES]
            found[int(bucket)] = tuple(
                RowExample(
                    float(own[name][row]),
                    self.sentences[own["sentence"][row]][0],
                    int(own["query"][row]),
                    int(own[f"{name} key"][row]),
                    *self.sentences[own["sentence"][row]][1:],
                )
                for row in rows
            )
        return found
