"""What differs between two runs: a word and its effect, a row of a head, similar heads, next tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from transformer.attention_maps.text_blocks import window_of
from transformer.config import ModelConfig
from transformer.files.checkpoints import Checkpoint
from transformer.interventions.activation_patching import Turn
from transformer.interventions.experiment import Experiment
from transformer.predictions.answer_probabilities import divergence, prediction_rows
from transformer.predictions.comparison import (
    Piece,
    StreamSimilarity,
    align,
    compared_attention,
    difference_map,
    head_divergence,
    largest_shift,
)
from transformer.predictions.target import shown_word
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import Trace

_LIKELY_TOKENS = 8
_SHAPE = ("kind", "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "vocabulary_size")


def swapped_words(pieces: Sequence[Piece]) -> tuple[str, str] | None:
    """Return the removed and the added word if a text changes in one word only."""
    removed, added = (
        [word for piece in pieces if piece.fate == fate for word in piece.text.split()] for fate in ("removed", "added")
    )
    return (removed[0], added[0]) if len(removed) == len(added) == 1 and removed != added else None


def log_p_of_text(trace: Trace) -> float | None:
    """Return log p of a text in nats; ``None`` if the model adds to it, or is not decoder-only."""
    rows = prediction_rows(trace)
    if not rows.everywhere or rows.predicts_nothing:
        return None
    return float(rows.chosen(rows.log_probabilities(trace)).sum())


def followed_word(found: Experiment, turn: Turn) -> tuple[Head, tuple[int, int]] | None:
    """Return the cross-attention head that attends most to the replaced word when it predicts ``turn``.

    To predict the token of A and the one that replaces it in B, its strongest weight is on the replaced word. ``None``
    if there is no such head, as in models without cross-attention.
    """
    first, second = found.original, found.changed
    if ("decoder", "cross") not in first.attention_kinds() or turn.other not in second.prediction.ids:
        return None
    rows = turn.row, second.prediction.ids.index(turn.other)
    source = align(first.source, second.source)
    swapped = [pair for pair, same in zip(source.pairs, source.equal, strict=True) if not same]
    found_heads = []
    for layer in range(first.n_layers("decoder")):
        views = [run.attention("decoder", layer, "cross") for run in (first, second)]
        weights = [view.weights[:, row] for view, row in zip(views, rows, strict=True)]
        for keys in swapped:
            for head in range(len(weights[0])):
                both = [(one[head], key) for one, key in zip(weights, keys, strict=True)]
                if all(one.argmax() == key for one, key in both):
                    least = float(min(one[key] for one, key in both))
                    found_heads.append((least, Head("decoder", "cross", layer, head)))
    return (max(found_heads)[1], rows) if found_heads else None


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


def compared_row(found: Experiment, head: Head, rows: tuple[int, int] | None = None) -> ComparedRow | None:
    """Return a row of a head in both runs; ``None`` if no row changes.

    By default, it is the row that attends most clearly to another token, else the one that changes most.
    """
    views = [compared_attention(run, head.stack, head.layer, head.kind) for run in (found.original, found.changed)]
    difference = difference_map(*views, head=head.head)
    changes = np.abs(difference.values).sum(axis=1)
    if rows is None:
        pairs = {pair: changes[at] for at, pair in enumerate(difference.query.merged) if None not in pair}
        if not pairs or not changes.any():
            return None
        shift = largest_shift(*views, head=head.head)
        rows = (shift.cells[0][0], shift.cells[1][0]) if shift else max(pairs, key=pairs.__getitem__)
    weights = np.zeros((2, len(difference.key.merged)))
    known = np.zeros_like(weights, dtype=bool)
    for side, (view, row) in enumerate(zip(views, rows, strict=True)):
        for column, keys in enumerate(difference.key.merged):
            if (key := keys[side]) is not None:
                weights[side, column] = view.weights[head.head, row, key]
                known[side, column] = view.allowed[row, key]
    queries = tuple(view.query.labels[row] for view, row in zip(views, rows, strict=True))
    return ComparedRow(queries, difference.key.labels, weights, known)


def furthest_pair(stream: StreamSimilarity) -> tuple[int, int] | None:
    """Return the step and the pair of equal words whose vectors are furthest apart, or ``None``."""
    equal = np.array(stream.alignment.equal, dtype=bool)
    if not equal.any():
        return None
    cosine = np.where(equal, stream.cosine, 2.0)
    step, pair = np.unravel_index(cosine.argmin(), cosine.shape)
    return None if cosine[step, pair] > 1 - 1e-6 else (int(step), int(pair))


def attention_of_sentence(trace: Trace, stack: str, layer: int, kind: str) -> AttentionView:
    """Return an attention layer without the tokens that a decoder-only model generated after the sentence."""
    view = compared_attention(trace, stack, layer, kind)
    if trace.checkpoint.config.kind != "decoder-only":
        return view
    kept = range(len(prompt_ids(trace.checkpoint, trace.sentence)))
    return window_of(view, kept, kept)


@dataclass(frozen=True)
class AlikeHeads:
    """Distances of another model's heads from A's head.

    Attributes:
        stack, kind: The attention of the other model that is compared.
        wanted: The stack and the kind of A's head.
        exists: Whether the other model has attention of that kind; if another kind is compared, it reads none of these
            tokens.
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


def heads_like(head: Head, first: Trace, other: Trace) -> AlikeHeads:
    """Compare one head of a run with all heads of another model's run on the same sentence.

    Heads with the same index in two checkpoints have nothing else in common; the smallest distance shows the most
    similar one. The same kind of attention is compared if it shares tokens with A's. A decoder-only model and a
    translation decoder read different tokens; in that case, the first kind that shares some is compared.
    """
    view = attention_of_sentence(first, head.stack, head.layer, head.kind)
    wanted, kinds = (head.stack, head.kind), other.attention_kinds()
    found: dict[tuple[str, str], np.ndarray] = {}
    for stack, kind in sorted(kinds, key=lambda place: place != wanted):
        layers = [attention_of_sentence(other, stack, layer, kind) for layer in range(other.n_layers(stack))]
        found[stack, kind] = np.stack([head_divergence(view, layer, head=head.head) for layer in layers])
        if not np.isnan(found[stack, kind]).any():
            break
    else:
        stack, kind = next(iter(found))
    return AlikeHeads(stack, kind, wanted, wanted in kinds, found[stack, kind])


def of_one_shape(one: ModelConfig, other: ModelConfig) -> bool:
    """Return whether both are third-party models of the same shape."""
    return one.is_guest and other.is_guest and all(getattr(one, name) == getattr(other, name) for name in _SHAPE)


def of_one_model(one: Checkpoint, other: Checkpoint) -> bool:
    """Return whether heads correspond one to one: third-party models of the same shape and vocabulary."""
    return of_one_shape(one.config, other.config) and one.tokenizer.pieces == other.tokenizer.pieces


class NextTokens(NamedTuple):
    """The next token that two files of one model predict from the same tokens.

    Attributes:
        displays: The most likely tokens of both, the most likely in A first.
        before, after: Their probabilities in A and in the other file: [token].
        logits, changes: Their logits in A, and what the other file adds: [token].
        kl: KL(A ‖ other) in nats.
        mean, most: Mean and largest |Δ logit| over the vocabulary.
    """

    displays: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray
    logits: np.ndarray
    changes: np.ndarray
    kl: float
    mean: float
    most: float


def next_tokens(found: Experiment) -> NextTokens | None:
    """Compare the next tokens of two files of one model; ``None`` if it predicts none."""
    first, asked = found.original, prediction_rows(found.original)
    if not asked.rows:
        return None
    row = asked.rows[0]
    runs = (first, found.changed)
    own, other = (np.atleast_2d(run.values(asked.logits))[row].astype(float) for run in runs)
    log_p, log_q = (asked.log_probabilities(run) for run in runs)
    best = {int(id) for one in (log_p, log_q) for id in np.argsort(-one[0])[:_LIKELY_TOKENS]}
    shown, change = sorted(best, key=lambda id: -log_p[0, id]), other - own
    return NextTokens(
        tuple(shown_word(first.checkpoint, id) for id in shown),
        np.exp(log_p[0, shown]),
        np.exp(log_q[0, shown]),
        own[shown],
        change[shown],
        float(divergence(log_p, log_q)[0]),
        float(np.abs(change).mean()),
        float(np.abs(change).max()),
    )
