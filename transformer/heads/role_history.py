"""Which head found its job at which step of the training: the tests of the literature at every snapshot.

Olsson et al. 2022, "In-context Learning and Induction Heads", found that induction heads arise within a short stretch
of training, in which the loss of repeated text falls. ``head_history.json`` in a checkpoint directory holds what was
counted; it names the weights and the sentences that it was made from.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn import functional as F

from transformer.disk.plain_files import read_plain_text
from transformer.files.checkpoints import Checkpoint, file_of_other_weights
from transformer.files.layout import is_same_fingerprint
from transformer.files.snapshots import snapshot
from transformer.heads.corpus_roles import corpus_roles
from transformer.heads.development import training_steps
from transformer.heads.induction import repeated_lengths, repeated_sequences
from transformer.heads.role_files import broken_file, write_heads
from transformer.heads.tally import Measure
from transformer.runs.head_places import OfHead
from transformer.text.sentence_files import sentence_digest

FILE = "head_history.json"
_DIGITS = 4


@dataclass(frozen=True)
class HeadHistory(OfHead):
    """One head: ``test``, the strongest of the finished model, and how far the head was on the way from chance (0) to
    the threshold (1) of this very test, at every step: ``strengths``. ``where``: the offset, for tests that have one.

    A test that has an offset is read at the best offset of each step.
    """

    test: str
    where: int
    has_job: bool
    strengths: tuple[float, ...]


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
                last.measured.has_job,
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
    return write_heads(checkpoint, FILE, values)


def load_role_history(checkpoint: Checkpoint) -> RoleHistory | None:
    """What ``save_role_history`` wrote for these very weights and snapshots; ``None`` where there is no such file.

    Raises ``CheckpointError``, a sentence, for a file that is broken or belongs to other weights.
    """
    path = checkpoint.path / FILE
    if not path.is_file():
        return None
    try:
        values = json.loads(read_plain_text(path))
        found, steps = values.pop("checkpoint"), tuple(values["steps"])
        del values["sentence_digest"]
        heads = [{**head, "strengths": tuple(map(float, head["strengths"]))} for head in values.pop("heads")]
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
