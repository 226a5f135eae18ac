"""Content of the Bugs page for one case: an original run and a run with one of six bugs, or none.

Everything that the page draws is computed here, without Streamlit. A notebook builds the same object:

>>> import transformer
>>> from transformer.faults.catalogue import diagnosis_of
>>> from views.bugs.bugs_view_model import bugs_view_model, experiment_with_bug
>>> checkpoint = transformer.load("checkpoints/bert-en")
>>> trace = transformer.trace(checkpoint, "He washed ___ hands.")
>>> diagnosis = diagnosis_of(4, checkpoint.config)
>>> case = bugs_view_model(diagnosis, experiment_with_bug(trace, diagnosis.fault))
>>> case.diagnosis.fault, case.outputs
('positions', ('He washed his hands.', 'He washed. hands.'))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from transformer.faults.catalogue import HEALTHY, TRAINING, Diagnosis
from transformer.faults.checked_models import (
    CheckedModel,
    checked_model,
    checked_model_in_training,
    self_attention_in_training,
)
from transformer.faults.fault_checks import CHECKS, PADS, Finding
from transformer.faults.forward_faults import inject_fault
from transformer.faults.signs import Signs, signs_of
from transformer.faults.training_faults import HEALTHY as HEALTHY_TRAINING
from transformer.faults.training_faults import Moment, TrainedToy, trained_toy
from transformer.heads.weight_patterns import LEAST_LIFT
from transformer.interventions.experiment import Experiment, experiment
from transformer.predictions.comparison import Shift, compared_attention, largest_shift, words
from transformer.runs.attention_view import AttentionView
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.head_places import Head
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

WORD = "gradient"
WORDS = (WORD, "abcd", "attention")
_OFTEN = 5  # times in an output, and more than half of it: what it repeats

Findings = Mapping[str, Finding | None]


class Symptom(NamedTuple):
    """What is wrong with an output.

    Attributes:
        kind: "unasked" (a masked-token model without a blank), "same", "silent", "dots", "repeats", "goes_on" (the
            original ends the text), "class", "copies" (a tiny model, without an error), "miscopies" or "other".
        word: What it repeats, or the class.
        expected: The same in the original.
    """

    kind: str
    word: str = ""
    expected: str = ""


@dataclass(frozen=True)
class BugsViewModel:
    """One case; ``bugs_view_model`` creates it.

    Attributes:
        diagnosis: The bug, hidden until the guess.
    """

    diagnosis: Diagnosis

    @property
    def looks_everywhere(self) -> bool:
        """Whether the row of ``shift`` attends to nearly all keys alike in this case."""
        (_, (row, key)), view = self.shift.cells, self.views[1]
        return bool(view.weights[self.head, row, key] < LEAST_LIFT / view.allowed[row].sum())

    @property
    def fault(self) -> str:
        """The name of the bug for ``inject_fault``, "" for none."""
        return "" if self.diagnosis.fault == HEALTHY else self.diagnosis.fault


@dataclass(frozen=True)
class CheckpointCase(BugsViewModel):
    """A bug in the forward pass of the checkpoint itself.

    Attributes:
        experiment: The original run and the run with the bug, over the same tokens.
        location: The head that is shown.
    """

    experiment: Experiment = field(repr=False)
    location: Head

    @property
    def outputs(self) -> tuple[str, str]:
        """The outputs of the original and of the model of this case."""
        return self.experiment.answer_before.text, self.experiment.answer_after.text

    @property
    def probabilities(self) -> tuple[float, float] | None:
        """The probability of each output; ``None`` if the model predicts nothing."""
        answers = self.experiment.answer_before, self.experiment.answer_after
        return (answers[0].probability, answers[1].probability) if answers[0].parts else None

    @property
    def head(self) -> int:
        """The head of the maps."""
        return self.location.head

    @cached_property
    def views(self) -> tuple[AttentionView, AttentionView]:
        """The attention of the layer that is shown, in both runs, with all padding as one token."""
        stack, kind, layer, _head = self.location
        first, second = (
            fold_padding(run.attention(stack, layer, kind))
            for run in (self.experiment.original, self.experiment.changed)
        )
        return first, second

    @property
    def map_distance(self) -> float:
        """Distance of the two maps: Jensen–Shannon divergence in bits."""
        stack, kind, layer, head = self.location
        return float(self.experiment.head_differences(stack, kind)[layer, head])

    @property
    def share_moved(self) -> float:
        """Mean share of its attention that a row of the head has moved to other tokens."""
        return _share_moved(self.views, self.head)

    @cached_property
    def shift(self) -> Shift | None:
        """The row that attends most clearly to another token with the bug; ``None`` if there is none."""
        stack, kind, layer, head = self.location
        first, second = (
            fold_padding(compared_attention(run, stack, layer, kind))
            for run in (self.experiment.original, self.experiment.changed)
        )
        return largest_shift(first, second, head=head)

    @cached_property
    def signs(self) -> tuple[Signs, Signs]:
        """The entropy of each attention and the size of the residual stream, in both runs."""
        return signs_of(self.experiment.original), signs_of(self.experiment.changed)

    @property
    def symptom(self) -> Symptom:
        """The symptom in the output, which names no bug."""
        before, after = self.outputs
        if self.probabilities is None:
            return Symptom("unasked")
        if before == after:
            return Symptom("same")
        if self.experiment.original.checkpoint.config.n_classes:
            return Symptom("class", after, before)
        if not before.strip():
            return Symptom("goes_on")
        return _symptom_of_text(after)


@dataclass(frozen=True)
class TrainingCase(BugsViewModel):
    """A bug in the training of a tiny model, and the same training without it."""

    @cached_property
    def toys(self) -> tuple[TrainedToy, TrainedToy]:
        """The training without the bug, and the training of this case."""
        return trained_toy(HEALTHY_TRAINING), trained_toy(TRAINING.get(self.diagnosis.fault, HEALTHY_TRAINING))

    @cached_property
    def written(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Outputs of each model for ``WORDS``."""
        first, second = (tuple(toy.learner.generate(word) for word in WORDS) for toy in self.toys)
        return first, second

    @property
    def outputs(self) -> tuple[str, str]:
        """Output of each model for ``WORD``."""
        return self.written[0][0], self.written[1][0]

    @property
    def symptom(self) -> Symptom:
        """The symptom in the output for ``WORD``."""
        before, after = self.outputs
        return Symptom("copies", after) if before == after else Symptom("miscopies", after, before)

    @property
    def head(self) -> int:
        """The head of the maps: the tiny model has one."""
        return 0

    @cached_property
    def shift(self) -> Shift | None:
        """The row that attends most clearly to another letter; ``None`` if there is none."""
        return largest_shift(*self.views, head=self.head)

    @property
    def share_moved(self) -> float:
        """Mean share of its attention that a row has moved to other letters."""
        return _share_moved(self.views, self.head)

    @cached_property
    def views(self) -> tuple[AttentionView, AttentionView]:
        """The decoder's self-attention while each model reads the correct output, as in training."""
        first, second = (self_attention_in_training(toy.learner, WORD)[0] for toy in self.toys)
        return first, second

    @property
    def steps(self) -> tuple[int, ...]:
        """The training steps of the curves."""
        return tuple(moment.step for moment in self.toys[0].moments)

    @property
    def last(self) -> Moment:
        """The last moment of the training of this case."""
        return self.toys[1].moments[-1]

    def curves(self, measure: str) -> tuple[Sequence[float], Sequence[float]]:
        """Return the curves of both trainings; ``measure`` is a field of ``Moment``."""
        first, second = ([getattr(moment, measure) for moment in toy.moments] for toy in self.toys)
        return first, second

    def findings(self) -> tuple[Findings, Findings]:
        """Run all checks on the model of this case, and on the one without the bug."""
        without, with_bug = (all_findings(checked_model_in_training(toy.learner, WORD)) for toy in self.toys)
        return with_bug, without


def fold_padding(view: AttentionView) -> AttentionView:
    """Return the heads with one column for all padding, which gets its whole weight, and one row.

    Rows of cross-attention stay: they are tokens of the output.
    """
    rows = range(len(view.query)) if view.kind == "cross" else _starts(view.query)
    columns = _starts(view.key)
    return replace(
        view,
        weights=np.add.reduceat(view.weights, columns, axis=-1)[:, rows],
        scores=view.scores[:, rows][..., columns],
        allowed=view.allowed[rows][:, columns],
        query=view.query if view.kind == "cross" else _folded(view.query),
        key=_folded(view.key),
    )


def _starts(tokens: TokenSequence) -> list[int]:
    """Return the positions of all tokens but padding, and of the first padding token of each run."""
    return [token.index for token in tokens if not token.is_padding or not tokens[token.index - 1].is_padding]


def _folded(tokens: TokenSequence) -> TokenSequence:
    count = sum(token.is_padding for token in tokens)
    kept = [replace(tokens[start], index=index) for index, start in enumerate(_starts(tokens))]
    if count > 1:
        kept = [replace(token, display=f"{token.display} ×{count}") if token.is_padding else token for token in kept]
    return TokenSequence(tuple(kept), tokens.name)


def _share_moved(views: tuple[AttentionView, AttentionView], head: int) -> float:
    weights, others = (view.weights[head] for view in views)
    return float(np.abs(weights - others).sum(axis=-1).mean() / 2)


def _symptom_of_text(written: str) -> Symptom:
    """Return the symptom in a text that differs from the original's."""
    pieces = [word.strip() for word in words(written)]
    if not pieces:
        return Symptom("silent")
    most, count = Counter(pieces).most_common(1)[0]
    if set(written) <= {".", " "}:
        return Symptom("dots")
    return Symptom("repeats", most) if count >= _OFTEN and count > len(pieces) / 2 else Symptom("other")


def experiment_with_bug(trace: Trace, fault: str) -> Experiment:
    """Run a trace again with a bug of the forward pass; both models generate outputs of limited length.

    Args:
        trace: The original run.
        fault: One of ``LIVE_FAULTS``; "healthy" or "" for none.
    """
    checkpoint = trace.checkpoint
    faulty, edits = inject_fault(checkpoint, "" if fault == HEALTHY else fault)
    # A model with a bug may never end its text, and the effect of the bug shows early.
    longest = Greedy(2 * len(trace.tokens(trace.stacks[0])) + 10) if checkpoint.config.has_decoder else None
    return experiment(trace, edits, checkpoint=faulty, strategy=longest)


def padded(run: Run, n_tokens: int) -> Run:
    """Return the run with padding after the sentence: every case has it, so that padding reveals nothing.

    Args:
        run: The run of the page.
        n_tokens: The number of tokens of its source without padding; 0 for a model without an encoder.
    """
    if not n_tokens:
        return run
    most = run.checkpoint.config.max_length - n_tokens
    return replace(run, source_pads=max(0, min(max(PADS, run.source_pads), most)))


def findings_of(trace: Trace, fault: str) -> Findings:
    """Run all checks on the checkpoint of a trace with a bug of the forward pass."""
    return all_findings(checked_model(trace, fault))


def all_findings(checked: CheckedModel) -> Findings:
    """Run all checks on one model."""
    return {name: check(checked) for name, check in CHECKS.items()}


def bugs_view_model(
    diagnosis: Diagnosis, found: Experiment | None = None, location: Head | None = None
) -> CheckpointCase | TrainingCase:
    """Build what the page draws for one case.

    Args:
        diagnosis: The bug.
        found: The original run and the run with the bug; not needed for a bug in training.
        location: The head that is shown; by default the one whose maps differ most.
    """
    if found is None:
        return TrainingCase(diagnosis)
    if location is None:
        stack, kind = found.original.attention_kinds()[0]
        location = found.most_changed_head or Head(stack, kind, 0, 0)
    return CheckpointCase(diagnosis, found, location)
