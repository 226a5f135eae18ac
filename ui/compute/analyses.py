"""What pages compute from a checkpoint or a trace, kept between reruns and shared by all sessions: read-only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

import transformer
from transformer.analysis import costs, parameters, position_edits, projection, tokenizations
from transformer.analysis import training_step as training
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence
from ui.compute.loading import keep_trace
from ui.compute.long_jobs import LongJobs
from ui.words.texts import common

TRAINING_STEPS: LongJobs[training.TrainingStep] = LongJobs("training step", keep=32)


def embedding_table(checkpoint: transformer.Checkpoint, stack: str) -> np.ndarray:
    """E of one stack: [vocabulary, model], the model's own memory, not a copy."""
    return getattr(checkpoint.model, stack).embedding.table.weight.detach().numpy()


def vocabulary_map(checkpoint: transformer.Checkpoint, stack: str) -> projection.Projection:
    """The two main directions of E, once per checkpoint."""
    return _vocabulary_map(checkpoint.fingerprint, stack, _checkpoint=checkpoint)


@st.cache_resource(max_entries=8, show_spinner=False)
def _vocabulary_map(fingerprint: str, stack: str, *, _checkpoint: transformer.Checkpoint) -> projection.Projection:
    return projection.principal_components(embedding_table(_checkpoint, stack))


def displays(checkpoint: transformer.Checkpoint) -> tuple[str, ...]:
    """How each entry of the vocabulary is shown, by id."""
    return _displays(checkpoint.fingerprint, _checkpoint=checkpoint)


@st.cache_resource(max_entries=8, show_spinner=False)
def _displays(fingerprint: str, *, _checkpoint: transformer.Checkpoint) -> tuple[str, ...]:
    return tuple(_checkpoint.tokenizer.display(id) for id in range(_checkpoint.config.vocabulary_size))


def parameter_statistics(checkpoint: transformer.Checkpoint) -> tuple[parameters.ParameterStatistics, ...]:
    """What is in the weights, once per checkpoint: it goes through all of them."""
    return _parameter_statistics(checkpoint.fingerprint, _checkpoint=checkpoint)


@st.cache_resource(max_entries=8, show_spinner=False)
def _parameter_statistics(
    fingerprint: str, *, _checkpoint: transformer.Checkpoint
) -> tuple[parameters.ParameterStatistics, ...]:
    return tuple(parameters.parameter_statistics(_checkpoint.model))


def measured_costs(trace: Trace) -> tuple[costs.Cost, ...]:
    """Parameters and time by block. Time depends on the lengths only, so the same lengths are measured once."""
    lengths = tuple(len(sequence) for sequence in (trace.source, trace.target) if sequence is not None)
    return _measured_costs(trace.checkpoint.fingerprint, lengths, _trace=trace)


@st.cache_resource(max_entries=32, show_spinner=False)
def _measured_costs(fingerprint: str, lengths: tuple[int, ...], *, _trace: Trace) -> tuple[costs.Cost, ...]:
    return costs.measured_costs(_trace)


def training_step(
    trace: Trace,
    *,
    stack: str,
    rate: float,
    optimizer: str = "sgd",
    masked: int = 0,
    label: int | None = None,
) -> training.TrainingStep | None:
    """One step of training on the tokens of ``trace`` (see ``transformer.analysis.training_step``), ``None`` if the
    reader has stopped it."""
    ids = tuple(sequence.ids if sequence else () for sequence in (trace.source, trace.target, trace.prediction))
    settings = {"stack": stack, "rate": rate, "optimizer": optimizer, "masked": masked, "label": label}
    return TRAINING_STEPS.result(
        (trace.checkpoint.fingerprint, ids, *settings.values()),
        lambda _: training.training_step(trace, **settings),
        doing=common("wait.step"),
    )


def cut_with_merges(checkpoint: transformer.Checkpoint, text: str, n_merges: int) -> TokenSequence:
    """The text as this tokenizer would cut it had it stopped learning after ``n_merges`` merges."""
    return _cut_with_merges(checkpoint.fingerprint, text, n_merges, _checkpoint=checkpoint)


@st.cache_resource(max_entries=128, show_spinner=False)
def _cut_with_merges(
    fingerprint: str, text: str, n_merges: int, *, _checkpoint: transformer.Checkpoint
) -> TokenSequence:
    return tokenizations.with_merges(_checkpoint.tokenizer, text, n_merges)


def trace_with_positions(
    checkpoint: transformer.Checkpoint,
    sentence: str,
    *,
    target: str,
    stacks: Sequence[str],
    order: Sequence[int] | None,
) -> Trace:
    """The sentence again, with the positions of ``stacks`` put in another order, or (``order=None``) taken away."""
    wanted = None if order is None else tuple(order)

    def make() -> Trace:
        edits = []
        for stack in stacks:
            if wanted is None:
                edits += position_edits.without_positions(checkpoint.model, stack)
            else:
                edits += position_edits.reordered_positions(checkpoint.model, stack, wanted)
        return transformer.trace(checkpoint, sentence, target=target or None, edits=edits)

    key = ("positions", checkpoint.fingerprint, sentence, target, tuple(stacks), wanted)
    return keep_trace(key, make, doing="wait.again")
