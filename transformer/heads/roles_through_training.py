"""Heads through training: one sentence at several snapshots, and the tests of roles at every snapshot.

``development``: every moment reads exactly the tokens of the finished model's trace (teacher forcing). So all maps have
the same rows and columns, and a change comes from the model. The text that a moment would write by itself stands beside
it.

``role_history``: which head found its role at which step. ``head_history.json`` in a checkpoint directory holds what
was counted; it names the weights and the sentences that it was made from.

Olsson et al. 2022, "In-context Learning and Induction Heads", describe that heads take up their roles within a short
stretch of training, in which the loss of repeated text falls.
"""

import json
import re
import warnings
from collections.abc import Callable, Sequence
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
from transformer.files.snapshots import snapshot, snapshot_steps
from transformer.heads.head_roles import HeadRole, corpus_roles, head_roles
from transformer.heads.induction import repeated_lengths, repeated_sequences
from transformer.heads.role_files import broken_file, write_heads
from transformer.heads.role_measures import UNCLEAR
from transformer.heads.weight_patterns import Measure, counted_rows
from transformer.interventions.experiment import same_tokens
from transformer.predictions.answer_probabilities import asked, entropy
from transformer.runs.attention_view import AttentionView
from transformer.runs.decoding import decode
from transformer.runs.head_places import Head, LocatedAtHead
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace as trace_sentence
from transformer.text.sentence_files import sentence_digest

_PIECES = re.compile(r"\s*(?:\w+|[^\w\s])")


@dataclass(frozen=True)
class Moment:
    """The model at one step of its training, on one sentence.

    ``step``: ``None`` for a finished checkpoint that does not tell. ``text``: the answer that it writes by
    itself, greedily. ``log_probability``: Σ ln p of the finished model's answer, token by token, ``n_tokens`` of them
    (NaN where the model is asked nothing). ``uncertainty``: entropy of what it predicts, in bits, mean over these
    tokens; at most log₂ of the vocabulary (or of the classes). ``views``: all its attention; ``roles``: of all heads.
    """

    step: int | None
    text: str
    log_probability: float
    n_tokens: int
    uncertainty: float
    views: tuple[AttentionView, ...]
    roles: tuple[HeadRole, ...]

    def view(self, stack: str, layer: int, kind: str) -> AttentionView:
        """All heads of one attention layer. Raises ``KeyError`` for one that the model does not have."""
        return {(view.stack, view.layer, view.kind): view for view in self.views}[stack, layer, kind]

    def role(self, place: Head) -> HeadRole:
        """What one head does at this step. Raises ``KeyError`` for a head that the model does not have."""
        return {role.place: role for role in self.roles}[place]

    @property
    def clear_roles(self) -> int:
        """Count the heads with a role other than "broad" and "none"."""
        return sum(role.role not in UNCLEAR for role in self.roles)


def training_steps(checkpoint: Checkpoint) -> tuple[int | None, ...]:
    """The steps of its snapshots and, last, its own (``None`` if neither its card nor its history tells).

    Empty where it came without snapshots from before.
    """
    own = checkpoint_step(checkpoint.path)
    earlier = [step for step in snapshot_steps(checkpoint.path) if own is None or step < own]
    return (*earlier, own) if earlier else ()


def development(checkpoint: Checkpoint, sentence: str, target: str | None = None) -> tuple[Moment, ...]:
    """``sentence`` at every step of ``training_steps``, read with the finished model's answer, or with ``target``.

    Raises ``InputError`` for a text that the model cannot take, ``CheckpointError`` for a snapshot that is broken.
    """
    trace = trace_sentence(checkpoint, sentence, target)
    *earlier, own = training_steps(checkpoint) or (None,)
    moments = [moment_of(snapshot(checkpoint, step), step, trace) for step in earlier]
    return (*moments, moment_of(checkpoint, own, trace))


def moment_of(checkpoint: Checkpoint, step: int | None, trace: Trace) -> Moment:
    """``checkpoint`` (the model at ``step``) on the very tokens of ``trace``, which the finished model has read."""
    here = same_tokens(trace, checkpoint=checkpoint)
    views = here.attention_views()
    question = asked(trace)
    n_tokens = 0 if question.everywhere else len(question.ids)
    logs = question.log_probabilities(here)  # [token, vocabulary]
    return Moment(
        step=step,
        text=_own_answer(checkpoint, trace.run),
        log_probability=float(question.chosen(logs).sum()) if n_tokens else float("nan"),
        n_tokens=n_tokens,
        uncertainty=float(entropy(logs).mean()) if n_tokens else float("nan"),
        views=views,
        roles=tuple(role for view in views for role in head_roles(view)),
    )


def settled(moments: Sequence[Moment], place: Head) -> int | None:
    """The index of the first moment from which on a head has the role that it has in the end; ``None`` if it ends up
    without one."""
    roles = [moment.role(place).role for moment in moments]
    if roles[-1] in UNCLEAR:
        return None
    others = [index for index, role in enumerate(roles) if role != roles[-1]]
    return others[-1] + 1 if others else 0


def settled_heads(moments: Sequence[Moment]) -> tuple[tuple[Head, ...], ...]:
    """For every moment the heads whose role is settled from then on (see ``settled``)."""
    found: list[list[Head]] = [[] for _ in moments]
    for role in moments[-1].roles:
        if (index := settled(moments, role.place)) is not None:
            found[index].append(role.place)
    return tuple(tuple(places) for places in found)


def map_change(before: AttentionView, after: AttentionView) -> np.ndarray:
    """How far every head's map has moved, [head], 0…1: mean over rows of the total variation ½ Σ_j |α_ij − β_ij|.

    Rows with at most one key to look at, and rows of padding, do not count; 0 where there are no others.
    """
    rows = counted_rows(after)
    if not rows.any():
        return np.zeros(after.n_heads)
    return np.abs(after.weights - before.weights).sum(axis=-1)[:, rows].mean(axis=1) / 2


def changed_most(moments: Sequence[Moment]) -> tuple[Head, float]:
    """The head whose map differs most between the first moment and the last, with its ``map_change``."""
    moved = [
        (float(change), Head(after.stack, after.kind, after.layer, head))
        for before, after in zip(moments[0].views, moments[-1].views, strict=True)
        for head, change in enumerate(map_change(before, after))
    ]
    change, place = max(moved, key=lambda pair: pair[0])  # the first of equals
    return place, change


def greatest_turn(moments: Sequence[Moment], place: Head) -> tuple[int, float]:
    """Where a head's map changes most from one moment to the next: the index of the later one, and the ``map_change``.

    Raises ``ValueError`` for fewer than two moments.
    """
    if len(moments) < 2:
        raise ValueError(f"{len(moments)} moments are too few for a change; give at least two")
    views = [moment.view(place.stack, place.layer, place.kind) for moment in moments]
    changes = [float(map_change(before, after)[place.head]) for before, after in pairwise(views)]
    index = max(range(len(changes)), key=changes.__getitem__)  # the first of equals
    return index + 1, changes[index]


def shared_words(text: str, other: str) -> tuple[tuple[str, bool], ...]:
    """``text`` in pieces (words and marks, each with the space before it), and whether ``other`` has them in the same
    order (longest matching blocks, Ratcliff & Obershelp 1988)."""
    pieces, others = _PIECES.findall(text), _PIECES.findall(other)
    matcher = SequenceMatcher(None, [p.strip() for p in pieces], [p.strip() for p in others], autojunk=False)
    shared = {block.a + k for block in matcher.get_matching_blocks() for k in range(block.size)}
    return tuple((piece, index in shared) for index, piece in enumerate(pieces))


def _own_answer(checkpoint: Checkpoint, run: Run) -> str:
    if checkpoint.config.has_decoder:
        return decode(checkpoint, run.sentence, source_pads=run.source_pads).text
    return trace_sentence(checkpoint, run.sentence, source_pads=run.source_pads).text


FILE = "head_history.json"
_DIGITS = 4
_IN_FILES = {"has_role": "has_job"}  # the name that files have had from the beginning
_IN_CODE = {name: own for own, name in _IN_FILES.items()}


@dataclass(frozen=True)
class HeadHistory(LocatedAtHead):
    """One head: ``test``, the strongest of the finished model, and how far the head was on the way from chance (0) to
    the threshold (1) of this very test, at every step: ``strengths``. ``where``: the offset, for tests that have one.

    A test that has an offset is read at the best offset of each step.
    """

    test: str
    where: int
    has_role: bool
    strengths: tuple[float, ...]

    @property
    def has_job(self) -> bool:
        """The old name of ``has_role``, which a snippet of the Training page showed."""
        warnings.warn("HeadHistory.has_job is now HeadHistory.has_role", DeprecationWarning, stacklevel=2)
        return self.has_role


@dataclass(frozen=True)
class RoleHistory:
    """All heads that could be tested, at ``steps`` (the last: the finished model's).

    ``repeated_loss``: of a decoder-only model, at every step the mean −ln p of random tokens that are written a second
    time (``induction.repeated_sequences``): only a look back can foretell them. Empty for other kinds.
    """

    steps: tuple[int, ...]
    heads: tuple[HeadHistory, ...]
    repeated_loss: tuple[float, ...]
    n_sentences: int


def role_history(
    checkpoint: Checkpoint, sentences: Sequence[str], *, progress: Callable[[int, int], None] | None = None
) -> RoleHistory:
    """Test every head of every snapshot over ``sentences``; ``progress(step's index, number of steps)`` before each.

    Raises ``ValueError`` for a checkpoint without snapshots, or one that does not tell its own step.
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
    """Mean −ln p, in nats a token, of the second r₁ … r_n in ``<s>`` r₁ … r_n r₁ … r_n (``repeated_sequences``).

    ln(vocabulary) is what guessing gives; the first r₁ … r_n cannot be foretold at all.
    """
    config = checkpoint.config
    lengths = repeated_lengths(config.max_length)
    total = 0.0
    for ids in repeated_sequences(config.vocabulary_size, lengths, seed=seed, special=checkpoint.special):
        ids, length = ids.to(checkpoint.model.device), len(ids) // 2
        foretold = checkpoint.model(ids[None, :-1])[0, length:].float()  # by the rows before those of the second time
        total += float(F.cross_entropy(foretold, ids[length + 1 :], reduction="sum"))
    return total / sum(lengths)


def save_role_history(checkpoint: Checkpoint, history: RoleHistory, sentences: Sequence[str]) -> Path:
    """Write ``head_history.json`` into the checkpoint's directory, whole or not at all; returns its path."""
    digest = sentence_digest(sentences)
    values = {"checkpoint": checkpoint.fingerprint, "sentence_digest": digest, **asdict(history)}
    values["heads"] = [{_IN_FILES.get(name, name): value for name, value in head.items()} for head in values["heads"]]
    return write_heads(checkpoint, FILE, values)


def load_role_history(checkpoint: Checkpoint) -> RoleHistory | None:
    """What ``save_role_history`` wrote for these very weights and snapshots; ``None`` where there is no such file.

    Raises ``CheckpointError``, a sentence, for a file that is broken or belongs to other weights.
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
    """A test that nothing was counted for stands at chance."""
    return 0.0 if measure is None else float(f"{measure.strength:.{_DIGITS}g}")
