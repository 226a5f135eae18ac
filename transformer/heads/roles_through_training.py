"""Heads through training: one sentence at several snapshots, and the tests of roles at every snapshot.

``development``: every snapshot reads exactly the tokens of the finished model's trace (teacher forcing). So all maps
have the same rows and columns, and a change comes from the model. The text that a snapshot would generate by itself is
included.

``role_history``: which head acquired its role at which step. ``head_history.json`` in a checkpoint directory holds the
counts and names the weights and sentences that it was made from.

Olsson et al. 2022, "In-context Learning and Induction Heads", show that heads acquire their roles within a short
stretch of training, in which the loss on repeated text falls.
"""

import json
import math
import re
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from transformer.disk.plain_files import read_plain_text
from transformer.files.checkpoints import Checkpoint, file_of_other_weights
from transformer.files.layout import file_of_results, is_same_fingerprint
from transformer.files.model_card import checkpoint_step
from transformer.files.once import once
from transformer.files.snapshots import snapshot, snapshot_steps
from transformer.heads.head_roles import RESTING, HeadRole, corpus_roles, sentence_roles
from transformer.heads.induction import repeated_lengths, repeated_sequences
from transformer.heads.role_files import broken_file, write_heads
from transformer.heads.role_measures import UNCLEAR
from transformer.heads.weight_patterns import Measure, counted_rows
from transformer.interventions.experiment import same_tokens
from transformer.predictions.answer_probabilities import entropy, prediction_rows
from transformer.runs.attention_view import AttentionView
from transformer.runs.decoding import decode
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.head_places import Head, LocatedAtHead
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace as trace_sentence
from transformer.text.sentence_files import sentence_digest

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
        roles: Roles of all heads.
        typed_log_probability: Mean log p per token where there is no output: of the text that a decoder-only model
            reads, or of the finished model's predictions; NaN if there is an output.
        predicted: In every row that the output was predicted from, what this model predicts there, with its
            probability.
        is_cut: Whether ``text`` ended at a limit, not by itself.
        has_random_weights: Whether it is the model before any training (``transformer.untrained``).
    """

    step: int | None
    text: str
    log_probability: float
    n_tokens: int
    uncertainty: float
    views: tuple[AttentionView, ...]
    roles: tuple[HeadRole, ...]
    typed_log_probability: float = math.nan
    predicted: tuple[tuple[str, float], ...] = ()
    is_cut: bool = False
    has_random_weights: bool = False

    def view(self, stack: str, layer: int, kind: str) -> AttentionView:
        """Return all heads of one attention layer.

        Raises:
            KeyError: If the model lacks the layer.
        """
        return self._views_by_layer[stack, layer, kind]

    def role(self, place: Head) -> HeadRole:
        """Return the role of one head at this step.

        Raises:
            KeyError: If the model lacks the head.
        """
        return self._roles_by_head[place]

    @once
    def _views_by_layer(self) -> dict[tuple[str, int, str], AttentionView]:
        return {(view.stack, view.layer, view.kind): view for view in self.views}

    @once
    def _roles_by_head(self) -> dict[Head, HeadRole]:
        return {role.place: role for role in self.roles}

    @property
    def clear_roles(self) -> int:
        """Number of heads with a role, as the Heads page counts them: those at rest have none."""
        return sum(role.is_active for role in self.roles)

    @property
    def at_rest(self) -> int:
        """Number of heads that attend mainly to special tokens, punctuation or the first token."""
        return sum(role.role in RESTING for role in self.roles)


def training_steps(checkpoint: Checkpoint) -> tuple[int | None, ...]:
    """Return the steps of its snapshots and, last, its own (``None`` if it is not recorded).

    The result is empty if there are no earlier snapshots.
    """
    own = checkpoint_step(checkpoint.path)
    earlier = [step for step in snapshot_steps(checkpoint.path) if own is None or step < own]
    return (*earlier, own) if earlier else ()


def development(checkpoint: Checkpoint, sentence: str, target: str | None = None) -> tuple[Moment, ...]:
    """Run ``sentence`` at every training step, with the finished model's output or ``target``.

    Raises:
        InputError: If the model cannot take a text.
        CheckpointError: If a snapshot is broken.
    """
    trace = trace_sentence(checkpoint, sentence, target)
    *earlier, own = training_steps(checkpoint) or (None,)
    moments = [moment_of(snapshot(checkpoint, step), step, trace) for step in earlier]
    return (*moments, moment_of(checkpoint, own, trace))


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
        roles=tuple(role for view in views for role in sentence_roles(view)),
        typed_log_probability=float(typed),
        predicted=_most_likely(checkpoint, logs),
        is_cut=is_cut,
        has_random_weights=checkpoint.seed is not None,
    )


def settled_moment(moments: Sequence[Moment], place: Head) -> int | None:
    """Return the index of the moment from which a head has its final role, or ``None``."""
    roles = [moment.role(place).role for moment in moments]
    if roles[-1] in UNCLEAR:
        return None
    others = [index for index, role in enumerate(roles) if role != roles[-1]]
    return others[-1] + 1 if others else 0


def settled_heads(moments: Sequence[Moment]) -> tuple[tuple[Head, ...], ...]:
    """Return the heads whose role becomes final at each moment (see ``settled_moment``)."""
    found: list[list[Head]] = [[] for _ in moments]
    for role in moments[-1].roles:
        if (index := settled_moment(moments, role.place)) is not None:
            found[index].append(role.place)
    return tuple(tuple(places) for places in found)


def map_change(before: AttentionView, after: AttentionView) -> np.ndarray:
    """Return how far every head's map has moved, from 0 to 1: [head].

    It is the mean over rows of the total variation ½ Σ_j |α_ij − β_ij|. Rows with at most one allowed key and rows of
    padding do not count; it is 0 if there are no others.
    """
    rows = counted_rows(after)
    if not rows.any():
        return np.zeros(after.n_heads)
    return np.abs(after.weights - before.weights).sum(axis=-1)[:, rows].mean(axis=1) / 2


def changed_most(moments: Sequence[Moment], *, among: Collection[Head] | None = None) -> tuple[Head, float]:
    """Return the head whose map differs most between the first moment and the last, and the change.

    ``among``: the heads that count; ``None`` for all.
    """
    moved = [
        (float(change), Head(after.stack, after.kind, after.layer, head))
        for before, after in zip(moments[0].views, moments[-1].views, strict=True)
        for head, change in enumerate(map_change(before, after))
    ]
    counted = (pair for pair in moved if among is None or pair[1] in among)
    change, place = max(counted, key=lambda pair: pair[0])  # the first if there are ties
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
    & Obershelp 1988), or one by one in texts of the same length if this leaves no more pieces unmarked: of two swapped
    words, both have changed, and not the word between them.
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


def _most_likely(checkpoint: Checkpoint, logs: np.ndarray) -> tuple[tuple[str, float], ...]:
    """Return the most likely token or class of every row of ``logs``, with its probability."""
    names = checkpoint.config.class_names
    return tuple(
        (names[best] if names else checkpoint.tokenizer.display(best), float(np.exp(row[best])))
        for row, best in zip(logs, logs.argmax(axis=-1).tolist(), strict=True)
    )


FILE = "head_history.json"
_DIGITS = 4
_IN_FILES = {"has_role": "has_job"}  # name in files since the first version
_IN_CODE = {name: own for own, name in _IN_FILES.items()}


@dataclass(frozen=True)
class HeadHistory(LocatedAtHead):
    """One head through training.

    Attributes:
        test: The finished model's strongest test.
        strengths: For every step how far this test had moved from chance (0) to the threshold (1). A test with an
            offset is taken at the best offset of each step.
        where: The offset, for tests that have one.
    """

    test: str
    where: int
    has_role: bool
    strengths: tuple[float, ...]

    @property
    def has_job(self) -> bool:
        """Deprecated name of ``has_role``, which a snippet of the Training page used."""
        warnings.warn("HeadHistory.has_job is now HeadHistory.has_role", DeprecationWarning, stacklevel=2)
        return self.has_role


@dataclass(frozen=True)
class RoleHistory:
    """All heads that could be tested, at ``steps`` (the last one is the finished model's).

    ``repeated_loss`` is, for a decoder-only model, the mean −log p of random tokens in their second copy at every step
    (``induction.repeated_sequences``): they can only be predicted from the first copy. It is empty for other kinds.
    """

    steps: tuple[int, ...]
    heads: tuple[HeadHistory, ...]
    repeated_loss: tuple[float, ...]
    n_sentences: int


def role_history(
    checkpoint: Checkpoint, sentences: Sequence[str], *, progress: Callable[[int, int], None] | None = None
) -> RoleHistory:
    """Test every head of every snapshot over ``sentences``.

    ``progress(index of the step, number of steps)`` is called before each.

    Raises:
        ValueError: If the checkpoint has no snapshots, or does not state its own step.
    """
    steps = training_steps(checkpoint)
    if not steps or steps[-1] is None:
        raise ValueError(f"{checkpoint.name} came without snapshots of earlier steps, so there is no history of heads")
    measured, losses, n_sentences = [], [], 0
    for index, step in enumerate(steps):
        if progress is not None:
            progress(index, len(steps))
        model = checkpoint if index == len(steps) - 1 else snapshot(checkpoint, step)
        roles = corpus_roles(model, sentences)
        measured.append([head.measured for head in roles.heads])
        n_sentences = roles.n_sentences
        if checkpoint.config.kind == "decoder-only":
            losses.append(repeated_loss(model))
    heads = []
    for number, last in enumerate(roles.heads):
        if not (test := last.measured.strongest):
            continue
        found = [at_step[number].measures.get(test) for at_step in measured]
        heads.append(
            HeadHistory(
                *last.place,
                test,
                last.measured.where.get(test, 0),
                last.measured.has_role,
                tuple(_strength(one) for one in found),
            )
        )
    return RoleHistory(steps, tuple(heads), tuple(losses), n_sentences)


@torch.inference_mode()
def repeated_loss(checkpoint: Checkpoint, *, seed: int = 0) -> float:
    """Return the mean −log p, in nats per token, of the second copy in ``<s>`` r₁ … r_n r₁ … r_n.

    The sequences are those of ``repeated_sequences``. Guessing gives log(vocabulary size); the first copy cannot be
    predicted.
    """
    config = checkpoint.config
    lengths = repeated_lengths(config.max_length)
    total = 0.0
    for ids in repeated_sequences(config.vocabulary_size, lengths, seed=seed, special=checkpoint.special):
        ids, length = ids.to(checkpoint.model.device), len(ids) // 2
        foretold = checkpoint.model(ids[None, :-1])[0, length:].float()  # rows before those of the second copy
        total += float(F.cross_entropy(foretold, ids[length + 1 :], reduction="sum"))
    return total / sum(lengths)


def save_role_history(checkpoint: Checkpoint, history: RoleHistory, sentences: Sequence[str]) -> Path:
    """Write ``head_history.json`` into the checkpoint's directory, all or nothing; return its path."""
    digest = sentence_digest(sentences)
    values = {"checkpoint": checkpoint.fingerprint, "sentence_digest": digest, **asdict(history)}
    values["heads"] = [{_IN_FILES.get(name, name): value for name, value in head.items()} for head in values["heads"]]
    return write_heads(checkpoint, FILE, values)


def load_role_history(checkpoint: Checkpoint) -> RoleHistory | None:
    """Load what ``save_role_history`` wrote for exactly these weights and snapshots, or ``None``.

    Raises:
        CheckpointError: If the file is broken or belongs to other weights.
    """
    path = file_of_results(checkpoint.path, FILE)
    if not path.is_file():
        return None
    try:
        values = json.loads(read_plain_text(path))
        found, steps = values.pop("checkpoint"), tuple(values["steps"])
        del values["sentence_digest"]
        heads = [{**head, "strengths": tuple(map(float, head["strengths"]))} for head in values.pop("heads")]
        heads = [{_IN_CODE.get(name, name): value for name, value in head.items()} for head in heads]
        losses = tuple(map(float, values.pop("repeated_loss")))
        if any(len(head["strengths"]) != len(steps) for head in heads) or len(losses) not in (0, len(steps)):
            raise ValueError(f"it does not have a number for each of its {len(steps)} steps")
        history = RoleHistory(steps, tuple(HeadHistory(**head) for head in heads), losses, int(values["n_sentences"]))
    except (KeyError, TypeError, ValueError, AttributeError, OSError, RecursionError) as error:
        raise broken_file(checkpoint, FILE, error) from error
    if not is_same_fingerprint(found, checkpoint.fingerprint) or steps != training_steps(checkpoint):
        raise file_of_other_weights(checkpoint, FILE, found)
    return history


def _strength(measure: Measure | None) -> float:
    """Return the strength of a measure; a test without any counts is at chance."""
    return 0.0 if measure is None else float(f"{measure.strength:.{_DIGITS}g}")
