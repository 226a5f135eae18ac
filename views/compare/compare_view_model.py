"""Content of the Compare page for two or three runs: outputs, one head's maps, and other differences.

Everything that the page draws is computed here, without Streamlit. A notebook builds the same object:

>>> import transformer
>>> from transformer.interventions.experiment import experiment
>>> from views.compare.compare_view_model import compare_view_model
>>> trace = transformer.trace(transformer.load("checkpoints/en-fr"), "The cat sat on the mat.")
>>> view_model = compare_view_model([experiment(trace, sentence="The cats sat on the mat.")])
>>> [answer.text for answer in view_model.answers]
["Le chat s'assit sur le tapis.", "Les chats s'assirent sur le tapis."]
>>> tuple(view_model.location), view_model.positions_differ
(('decoder', 'cross', 1, 3), False)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from transformer.config import ModelConfig
from transformer.files.checkpoints import Checkpoint
from transformer.guests.guest_config import GuestConfig
from transformer.heads.head_roles import HeadRole, sentence_roles
from transformer.interventions.experiment import Experiment
from transformer.layers.embedding_space import parts_of_cosine
from transformer.predictions.answer_probabilities import Answer, divergence, prediction_rows
from transformer.predictions.comparison import (
    MapDifference,
    Piece,
    Shift,
    StreamSimilarity,
    align,
    alike_heads,
    compared_attention,
    difference_map,
    first_positions,
    word_diff,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.runs.inputs import prompt_ids
from transformer.runs.next_sentence import NextSentenceAnswer, next_sentence
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

SMALLEST_SCALE = 0.05  # lower bound of the scale of difference maps, so that rounding errors stay invisible
_LIKELY_TOKENS = 8
_SHAPE = ("kind", "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "vocabulary_size")


@dataclass(frozen=True)
class Side:
    """One of the runs.

    Attributes:
        letter: "A", "B" or "C".
        trace: The recorded run.
        location: The head of this run that is shown.
        whole: Whether the map includes the tokens that a decoder-only model generated after the sentence.
    """

    letter: str
    trace: Trace = field(repr=False)
    location: Head
    whole: bool = True

    @property
    def name(self) -> str:
        """The name of its checkpoint."""
        return self.trace.checkpoint.name

    @property
    def is_cut(self) -> bool:
        """Whether only the map of the sentence itself is shown."""
        return not self.whole and self.trace.checkpoint.config.kind == "decoder-only"

    @cached_property
    def next_sentence(self) -> NextSentenceAnswer | None:
        """Whether its second sentence follows the first; ``None`` where that is not predicted."""
        return next_sentence(self.trace)

    @cached_property
    def view(self) -> AttentionView:
        """The attention of the layer that is shown."""
        return self.attention(self.location.stack, self.location.layer, self.location.kind)

    def attention(self, stack: str, layer: int, kind: str) -> AttentionView:
        """Return the attention of a layer; rows of cross-attention are named after their predictions."""
        view, trace = compared_attention(self.trace, stack, layer, kind), self.trace
        return first_positions(view, len(prompt_ids(trace.checkpoint, trace.sentence))) if self.is_cut else view


@dataclass(frozen=True)
class PackingLogits:
    """Next-token prediction of another file of the model from the tokens of A.

    Attributes:
        kl: KL(A ‖ this file) in nats.
        mean, most: Mean and largest |Δ logit| over the vocabulary.
    """

    kl: float
    mean: float
    most: float


@dataclass(frozen=True)
class LikelyTokens:
    """The most likely next tokens of several files of one model.

    Attributes:
        displays: The tokens, the most likely in A first.
        probabilities: One array for each side: [token].
        logits: The logits in A: [token].
        changes: The logit − that in A, one array for each other side: [token].
        others: One summary for each other side.
    """

    displays: tuple[str, ...]
    probabilities: tuple[np.ndarray, ...]
    logits: np.ndarray
    changes: tuple[np.ndarray, ...]
    others: tuple[PackingLogits, ...]


@dataclass(frozen=True)
class ComparedRow:
    """The row of a head in A, and the corresponding row in B.

    Attributes:
        queries: Labels of the row in A and in B.
        keys: Labels of the keys, in the order of both sentences.
        weights: [A or B, key].
        known: [A or B, key]; ``False`` where a sentence lacks the key, or may not attend to it.
    """

    queries: tuple[str, str]
    keys: tuple[str, ...]
    weights: np.ndarray
    known: np.ndarray


class FollowedWord(NamedTuple):
    """A head that looks most at the replaced word, to predict the token that changes in the output.

    Attributes:
        location: The head.
        rows: The row in A and in B.
        weight: The smaller of its two weights on the replaced word.
    """

    location: Head
    rows: tuple[int, int]
    weight: float


@dataclass(frozen=True)
class CompareViewModel:
    """One run, A, and one or two others; ``compare_view_model`` creates it.

    Attributes:
        experiments: A with each of the others.
        sides: A and the others, each with the head that is shown.
    """

    experiments: tuple[Experiment, ...] = field(repr=False)
    sides: tuple[Side, ...]

    @property
    def location(self) -> Head:
        """The head of A."""
        return self.sides[0].location

    @property
    def are_sentences(self) -> bool:
        """Whether the sentences differ, not the models, of which one may mask a word of the same sentence."""
        return not self.are_models and len({side.trace.sentence for side in self.sides}) > 1

    @property
    def are_models(self) -> bool:
        """Whether the models differ."""
        return len({side.name for side in self.sides}) > 1

    @property
    def is_one_run(self) -> bool:
        """Whether both are the same run, so that nothing can differ."""
        return all(one.changed is one.original for one in self.experiments)

    @property
    def positions_differ(self) -> bool:
        """Whether the sentences differ in their number of tokens, so that later words move to other positions."""
        stack = self.location.stack
        lengths = {len(side.trace.tokens(stack)) for side in self.sides}
        read = {len(side.trace.source) for side in self.sides if side.trace.source is not None}
        return max(len(lengths), len(read)) > 1

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The output of each model."""
        return self.experiments[0].answer_before, *(one.answer_after for one in self.experiments)

    @cached_property
    def word_differences(self) -> tuple[tuple[Piece, ...], ...]:
        """The words of each output compared with A's; A's own compared with B's."""
        first, *others = self.answers
        found = [word_diff(first.text, other.text) for other in others]
        return found[0], *found

    @cached_property
    def differences(self) -> tuple[MapDifference, ...]:
        """The map of each other side minus A's."""
        first, *others = self.sides
        return tuple(
            difference_map(first.view, one.view, head=first.location.head, second_head=one.location.head)
            for one in others
        )

    @property
    def limit(self) -> float:
        """The end of the scale of all difference maps."""
        return max(SMALLEST_SCALE, *(float(np.abs(difference.values).max()) for difference in self.differences))

    @cached_property
    def largest_shift(self) -> Shift | None:
        """The row of A's head that attends most clearly to another token in B; ``None`` where none does."""
        return self.experiments[0].largest_shift(self.location)

    @cached_property
    def swapped_words(self) -> tuple[str, str] | None:
        """The one word of sentence A that another one replaces in B; ``None`` if more or less changes."""
        return _swap(word_diff(*(side.trace.sentence for side in self.sides[:2])))

    @cached_property
    def swapped_outputs(self) -> tuple[str, str] | None:
        """The same for the outputs."""
        return _swap(self.word_differences[1])

    @cached_property
    def complete_texts(self) -> tuple[float, ...] | None:
        """Log probability of each text in nats; ``None`` if a model adds to one, or is not decoder-only."""
        traces = [side.trace for side in self.sides]
        asked = [prediction_rows(trace) for trace in traces]
        if any(not rows.everywhere or rows.predicts_nothing for rows in asked):
            return None
        pairs = zip(asked, traces, strict=True)
        return tuple(float(rows.chosen(rows.log_probabilities(trace)).sum()) for rows, trace in pairs)

    @cached_property
    def followed(self) -> FollowedWord | None:
        """The head that is shown, if it looks most at the replaced word in both; ``None`` if it does not."""
        found = followed_word(self.experiments[0])
        return found if found and found.location == self.location else None

    @cached_property
    def changed_row(self) -> ComparedRow | None:
        """The row of ``followed`` or ``largest_shift``, else the one that changes most; ``None`` if none does."""
        difference, views = self.differences[0], [side.view for side in self.sides[:2]]
        rows = {entry[0]: at for at, entry in enumerate(difference.query.merged) if None not in entry}
        shift, changes = self.largest_shift, np.abs(difference.values).sum(axis=1)
        if not rows or not changes.any():
            return None
        if self.followed:
            at = rows[self.followed.rows[0]]
        else:
            at = (
                rows[views[0].query.labels.index(shift.query)] if shift else max(rows.values(), key=changes.__getitem__)
            )
        places = difference.query.merged[at]
        weights = np.zeros((2, len(difference.key.merged)))
        known = np.zeros_like(weights, dtype=bool)
        for letter, (side, view, row) in enumerate(zip(self.sides, views, places, strict=False)):
            for column, keys in enumerate(difference.key.merged):
                if (key := keys[letter]) is not None:
                    weights[letter, column] = view.weights[side.location.head, row, key]
                    known[letter, column] = view.allowed[row, key]
        queries = tuple(view.query.labels[row] for view, row in zip(views, places, strict=True))
        return ComparedRow(queries, difference.key.labels, weights, known)

    @cached_property
    def head_differences(self) -> tuple[np.ndarray, ...]:
        """Distance of each head of this kind from the same head in A, in bits.

        There is one array [layer, head] per other side.
        """
        return tuple(one.head_differences(self.location.stack, self.location.kind) for one in self.experiments)

    @cached_property
    def stream(self) -> StreamSimilarity:
        """Similarity of the residual streams of A and B."""
        return self.experiments[0].stream_similarity(self.location.stack)

    @cached_property
    def furthest(self) -> tuple[int, int] | None:
        """The step and the pair of equal words whose vectors are furthest apart; ``None`` where none differ."""
        equal = np.array(self.stream.alignment.equal, dtype=bool)
        if not equal.any():
            return None
        cosine = np.where(equal, self.stream.cosine, 2.0)
        step, pair = np.unravel_index(cosine.argmin(), cosine.shape)
        return None if cosine[step, pair] > 1 - 1e-6 else (int(step), int(pair))

    @cached_property
    def cosine_parts(self) -> np.ndarray:
        """Contribution of each pair of tokens to the cosine of two sentence vectors: [token of A, token of B]."""
        return parts_of_cosine(*(side.trace for side in self.sides[:2]))

    @cached_property
    def changed_roles(self) -> tuple[tuple[tuple[HeadRole, HeadRole], ...], ...]:
        """Heads whose role in this sentence differs from that in A, as (in A, in the other), per other side."""
        own, *others = (
            [role for view in side.trace.attention_views() for role in sentence_roles(view)] for side in self.sides
        )
        return tuple(
            tuple((one, two) for one, two in zip(own, roles, strict=True) if one.role != two.role) for roles in others
        )

    @property
    def n_heads(self) -> int:
        """Number of heads of A."""
        return sum(view.n_heads for view in self.sides[0].trace.attention_views())

    @cached_property
    def likely_tokens(self) -> LikelyTokens | None:
        """The most likely next tokens of all files of one model; ``None`` if it predicts none."""
        first = self.sides[0].trace
        question = prediction_rows(first)
        if not question.rows:
            return None
        row, names = question.rows[0], first.checkpoint.config.class_names
        display = names.__getitem__ if names else first.checkpoint.tokenizer.display
        own, *logits = (np.atleast_2d(side.trace.values(question.logits))[row].astype(float) for side in self.sides)
        chances = [question.log_probabilities(side.trace) for side in self.sides]
        best = {int(id) for found in chances for id in np.argsort(-found[0])[:_LIKELY_TOKENS]}
        shown = sorted(best, key=lambda id: -chances[0][0, id])
        return LikelyTokens(
            displays=tuple(display(id) for id in shown),
            probabilities=tuple(np.exp(chance[0, shown]) for chance in chances),
            logits=own[shown],
            changes=tuple((found - own)[shown] for found in logits),
            others=tuple(
                PackingLogits(
                    kl=float(divergence(chances[0], chance)[0]),
                    mean=float(np.abs(found - own).mean()),
                    most=float(np.abs(found - own).max()),
                )
                for found, chance in zip(logits, chances[1:], strict=True)
            ),
        )


def compare_view_model(
    experiments: Sequence[Experiment],
    location: Head | None = None,
    *,
    others: Sequence[Head] = (),
    whole: bool = True,
) -> CompareViewModel:
    """Build what the page draws for several runs.

    Args:
        experiments: A with each of the others.
        location: The head of A; by default that of ``followed_word``, else the one whose maps differ most.
        others: The heads of the others, if they differ.
        whole: Whether the maps include what a decoder-only model generated after the sentence.
    """
    first = experiments[0].original
    if location is None:
        stack, kind = first.attention_kinds()[0]
        followed = followed_word(experiments[0])
        location = followed.location if followed else experiments[0].most_changed_head or Head(stack, kind, 0, 0)
    traces = (first, *(one.changed for one in experiments))
    heads = (location, *(others or [location] * len(experiments)))
    sides = (Side(*side, whole) for side in zip("ABC", traces, heads, strict=False))
    return CompareViewModel(tuple(experiments), tuple(sides))


def followed_word(found: Experiment) -> FollowedWord | None:
    """Return the head of cross-attention that looks most at the replaced word where the output changes.

    To predict a token of A and the one that replaces it in B, its strongest weight is on the replaced word. ``None``
    where there is no such head, as in models without cross-attention.
    """
    first, second = found.original, found.changed
    best = None
    for stack, kind in first.attention_kinds():
        if kind != "cross" or (stack, kind) not in second.attention_kinds():
            continue
        for layer in range(min(first.n_layers(stack), second.n_layers(stack))):
            views = [compared_attention(run, stack, layer, kind) for run in (first, second)]
            for rows in _replaced(views[0].query, views[1].query):
                for keys in _replaced(views[0].key, views[1].key):
                    pairs = zip(views, rows, keys, strict=True)
                    at, other = ((view.weights[:, row], key) for view, row, key in pairs)
                    for head in range(len(at[0])):
                        if all(weights[head].argmax() == key for weights, key in (at, other)):
                            weight = float(min(weights[head, key] for weights, key in (at, other)))
                            if best is None or weight > best.weight:
                                best = FollowedWord(Head(stack, kind, layer, head), rows, weight)
    return best


def _replaced(first: TokenSequence, second: TokenSequence) -> list[tuple[int, int]]:
    """Return the pairs of positions at which a word of the second sequence replaces one of the first."""
    found = align(first, second)
    return [
        pair
        for pair, same in zip(found.pairs, found.equal, strict=True)
        if not same and any(letter.isalnum() for letter in first[pair[0]].text)
    ]


def _swap(pieces: Sequence[Piece]) -> tuple[str, str] | None:
    """Return the removed and the added word if a text changes in one word only."""
    removed, added = (words_of_fate(pieces, fate) for fate in ("removed", "added"))
    return (removed[0], added[0]) if len(removed) == len(added) == 1 and removed != added else None


def words_of_fate(pieces: Sequence[Piece], fate: str) -> list[str]:
    """Return the words of a difference that were "removed" or "added"."""
    return [word for piece in pieces if piece.fate == fate for word in piece.text.split()]


@dataclass(frozen=True)
class AlikeHeads:
    """Distances of another model's heads from A's head.

    Attributes:
        stack, kind: The attention of the other model that is compared.
        wanted: The stack and the kind of A's head.
        exists: Whether the other model has attention of that kind, which then reads none of these tokens.
        distances: Jensen–Shannon divergence in bits: [layer, head]; NaN where no tokens correspond.
    """

    stack: str
    kind: str
    wanted: tuple[str, str]
    exists: bool
    distances: np.ndarray = field(repr=False)

    @property
    def best(self) -> tuple[int, int]:
        """Layer and head of the most similar one."""
        layer, head = np.unravel_index(self.distances.argmin(), self.distances.shape)
        return int(layer), int(head)

    @property
    def is_other_kind(self) -> bool:
        """Whether A's head belongs to a different kind of attention."""
        return (self.stack, self.kind) != self.wanted

    @property
    def is_known(self) -> bool:
        """Whether any tokens correspond."""
        return not np.isnan(self.distances).any()


def heads_like(location: Head, first: Trace, other: Trace) -> AlikeHeads:
    """Compare one head of a run with all heads of another model's run on the same sentence.

    The same kind of attention is compared if it shares tokens with A's. A decoder-only model and a translation decoder
    read different tokens; in that case, the first kind that shares some is compared.
    """
    one = Side("A", first, location, whole=False)
    wanted, kinds = (location.stack, location.kind), other.attention_kinds()
    found: dict[tuple[str, str], np.ndarray] = {}
    for stack, kind in sorted(kinds, key=lambda place: place != wanted):
        side = Side("B", other, Head(stack, kind, 0, 0), whole=False)
        layers = [side.attention(stack, layer, kind) for layer in range(other.n_layers(stack))]
        found[stack, kind] = alike_heads(one.view, layers, head=location.head)
        if not np.isnan(found[stack, kind]).any():
            break
    else:
        stack, kind = next(iter(found))
    return AlikeHeads(stack, kind, wanted, wanted in kinds, found[stack, kind])


def of_one_shape(one: ModelConfig, other: ModelConfig) -> bool:
    """Return whether both are third-party models of the same shape."""
    guests = isinstance(one, GuestConfig) and isinstance(other, GuestConfig)
    return guests and all(getattr(one, name) == getattr(other, name) for name in _SHAPE)


def of_one_model(one: Checkpoint, other: Checkpoint) -> bool:
    """Return whether heads correspond one to one: third-party models of the same shape and vocabulary."""
    return of_one_shape(one.config, other.config) and one.tokenizer.pieces == other.tokenizer.pieces
