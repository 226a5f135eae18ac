"""How a model came to do what it does: the same sentence at several steps of its training.

Every moment reads exactly the tokens of the finished model's trace (teacher forcing). So all maps have the same rows
and columns, and a change comes from the model. The text that a moment would write by itself stands beside it. That
heads take up their jobs within a short stretch of training, together with a fall of the loss, is described by Olsson et
al. 2022, "In-context Learning and Induction Heads".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.files.model_card import checkpoint_step
from transformer.files.snapshots import snapshot, snapshot_steps
from transformer.heads.head_jobs import UNCLEAR
from transformer.heads.sentence_roles import HeadRole, head_roles
from transformer.heads.tally import counted_rows
from transformer.interventions.change_of_answer import same_tokens
from transformer.predictions.answer_probabilities import entropy
from transformer.predictions.answer_rows import asked
from transformer.runs.attention_view import AttentionView
from transformer.runs.decoding import decode
from transformer.runs.head_places import Head
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace as trace_sentence

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
        """How many heads have a job: a role other than "broad" and "none"."""
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
    """The index of the first moment from which on a head has the job that it has in the end; ``None`` if it ends up
    without one."""
    roles = [moment.role(place).role for moment in moments]
    if roles[-1] in UNCLEAR:
        return None
    others = [index for index, role in enumerate(roles) if role != roles[-1]]
    return others[-1] + 1 if others else 0


def settled_heads(moments: Sequence[Moment]) -> tuple[tuple[Head, ...], ...]:
    """For every moment the heads whose job is settled from then on (see ``settled``)."""
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
