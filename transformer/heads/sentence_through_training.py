"""One sentence through training: outputs and attention maps of the model at several snapshots.

Every snapshot reads exactly the tokens of the finished model's trace (teacher forcing), so all maps have the same rows
and columns, and a change comes from the model. The text that a snapshot would generate by itself is included.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.files.model_card import checkpoint_step
from transformer.files.snapshots import snapshot_steps
from transformer.heads.weight_patterns import counted_rows
from transformer.interventions.experiment import same_tokens
from transformer.predictions.answer_probabilities import entropy, prediction_rows
from transformer.runs.attention_view import AttentionView
from transformer.runs.decoding import decode
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.head_places import Head
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace as trace_sentence

_PIECES = re.compile(r"\s*(?:\w+|[^\w\s])")


@dataclass(frozen=True)
class Moment:
    """The model at one step of its training, on one sentence.

    Attributes:
        step: ``None`` for a finished checkpoint that does not state it, and for random weights.
        text: Output that it generates by itself, greedily.
        log_probability: Σ log p of the finished model's output, over ``n_tokens`` tokens (NaN if nothing is predicted).
        uncertainty: Entropy of its predictions in bits, averaged over these tokens; at most log₂ of the vocabulary size
            (or of the number of classes).
        views: All its attention.
        typed_log_probability: Mean log p per token if there is no output, either of the text that a decoder-only model
            reads or of the finished model's predictions; NaN if there is an output.
        is_cut: Whether ``text`` ended at a limit, not by itself.
        has_random_weights: Whether it is the model before any training (``transformer.files.untrained``).
    """

    step: int | None
    text: str
    log_probability: float
    n_tokens: int
    uncertainty: float
    views: tuple[AttentionView, ...]
    typed_log_probability: float = math.nan
    is_cut: bool = False
    has_random_weights: bool = False

    @property
    def probability(self) -> float:
        """Probability per token (geometric mean) of the finished model's output; NaN if there is none."""
        return math.exp(self.log_probability / self.n_tokens) if self.n_tokens else math.nan

    def view(self, stack: str, layer: int, kind: str) -> AttentionView:
        """Return all heads of one attention layer.

        Raises:
            KeyError: If the model lacks the layer.
        """
        return {(view.stack, view.layer, view.kind): view for view in self.views}[stack, layer, kind]


def training_steps(checkpoint: Checkpoint) -> tuple[int | None, ...]:
    """Return the steps of its snapshots and, last, its own (``None`` if it is not recorded).

    The result is empty if there are no earlier snapshots.
    """
    own = checkpoint_step(checkpoint.path)
    earlier = [step for step in snapshot_steps(checkpoint.path) if own is None or step < own]
    return (*earlier, own) if earlier else ()


def moment_of(checkpoint: Checkpoint, step: int | None, trace: Trace, *, max_new_tokens: int | None = None) -> Moment:
    """Run ``checkpoint`` (the model at ``step``) on the tokens of ``trace``, from the finished model.

    ``max_new_tokens`` limits its own output: a model with random weights rarely ends a text.
    """
    here = same_tokens(trace, checkpoint=checkpoint)
    views = here.attention_views()
    question = prediction_rows(trace)
    n_tokens = 0 if question.everywhere else len(question.ids)
    logs = question.log_probabilities(here)  # [token, vocabulary]
    typed = question.chosen(logs).mean() if question.everywhere and question.ids else math.nan
    text, is_cut = _own_answer(checkpoint, trace.run, max_new_tokens)
    return Moment(
        step=step,
        text=text,
        log_probability=float(question.chosen(logs).sum()) if n_tokens else float("nan"),
        n_tokens=n_tokens,
        uncertainty=float(entropy(logs).mean()) if n_tokens else float("nan"),
        views=views,
        typed_log_probability=float(typed),
        is_cut=is_cut,
        has_random_weights=checkpoint.seed is not None,
    )


def map_change(before: AttentionView, after: AttentionView) -> np.ndarray:
    """Return how far every head's map has moved, from 0 to 1: [head].

    It is the mean over rows of the total variation ½ Σ_j |α_ij − β_ij|. Rows with at most one allowed key and rows of
    padding do not count; it is 0 if there are no others.
    """
    rows = counted_rows(after)
    if not rows.any():
        return np.zeros(after.n_heads)
    return np.abs(after.weights - before.weights).sum(axis=-1)[:, rows].mean(axis=1) / 2


def changed_most(moments: Sequence[Moment]) -> tuple[Head, float]:
    """Return the head whose map differs most between the first moment and the last, and the change."""
    moved = [
        (float(change), Head(after.stack, after.kind, after.layer, head))
        for before, after in zip(moments[0].views, moments[-1].views, strict=True)
        for head, change in enumerate(map_change(before, after))
    ]
    change, place = max(moved, key=lambda pair: pair[0])  # the first if there are ties
    return place, change


def greatest_turn(moments: Sequence[Moment], place: Head) -> tuple[int, float]:
    """Return the later of the two moments between which a head's map changes most, and the change.

    Raises:
        ValueError: If there are fewer than two moments.
    """
    if len(moments) < 2:
        raise ValueError(f"{len(moments)} moments are too few for a change; give at least two")
    views = [moment.view(place.stack, place.layer, place.kind) for moment in moments]
    changes = [float(map_change(before, after)[place.head]) for before, after in pairwise(views)]
    index = max(range(len(changes)), key=changes.__getitem__)  # the first if there are ties
    return index + 1, changes[index]


def shared_words(text: str, other: str) -> tuple[tuple[str, bool], ...]:
    """Split ``text`` into pieces, and mark those that ``other`` has in the same order.

    Pieces are words and punctuation marks, each with the space before it. They are matched by longest blocks (Ratcliff
    & Obershelp 1988), or, in texts of the same length, place by place if that marks at least as many: if two words are
    swapped, both count as changed, not the word between them.
    """
    pieces, others = _PIECES.findall(text), _PIECES.findall(other)
    words, other_words = [piece.strip() for piece in pieces], [piece.strip() for piece in others]
    matcher = SequenceMatcher(None, words, other_words, autojunk=False)
    shared = {block.a + k for block in matcher.get_matching_blocks() for k in range(block.size)}
    if len(words) == len(other_words):
        in_place = {index for index, word in enumerate(words) if word == other_words[index]}
        shared = in_place if len(in_place) >= len(shared) else shared
    return tuple((piece, index in shared) for index, piece in enumerate(pieces))


def _own_answer(checkpoint: Checkpoint, run: Run, max_new_tokens: int | None) -> tuple[str, bool]:
    """Return the output that the model generates, and whether it ended at the limit."""
    if checkpoint.config.has_decoder:
        strategy = Greedy(max_new_tokens)
        written = decode(checkpoint, run.sentence, strategy, source_pads=run.source_pads)
        return written.text, not written.finished
    return trace_sentence(checkpoint, run.sentence, source_pads=run.source_pads).text, False
