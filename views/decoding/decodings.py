"""Further answers of the model, cached: texts written by a strategy, verdicts with one word left out."""

from __future__ import annotations

import streamlit as st

import transformer
from transformer.analysis.answers.decoding_steps import without_most_activations
from transformer.analysis.answers.leave_one_out import LeaveOneOut, leave_one_out
from transformer.runs.strategies import Strategy
from ui.compute.long_jobs import LongJobs
from ui.words.texts import Spoken, common

LEFT_OUT: LongJobs[LeaveOneOut] = LongJobs("leave one out", keep=64)


def decoding(
    checkpoint: transformer.Checkpoint, sentence: str, strategy: Strategy, *, forced: str = "", pads: int = 0
) -> transformer.Decoding:
    """The text that the strategy writes, every step with its candidates, logits and attention.

    Raises ``transformer.InputError`` for a text that the model cannot take.
    """
    return _decoding(checkpoint.fingerprint, sentence, strategy, forced, pads, _checkpoint=checkpoint)


@st.cache_resource(max_entries=48, show_spinner=Spoken("wait.write"))
def _decoding(
    fingerprint: str, sentence: str, strategy: Strategy, forced: str, pads: int, *, _checkpoint: transformer.Checkpoint
) -> transformer.Decoding:
    written = transformer.decode(_checkpoint, sentence, strategy, forced=forced, source_pads=pads, record_steps=True)
    return without_most_activations(written)


def left_out(checkpoint: transformer.Checkpoint, sentence: str, *, pads: int = 0) -> LeaveOneOut | None:
    """The classifier's verdict with each word left out in turn, ``None`` if the reader has stopped it.

    Raises ``transformer.InputError``.
    """
    return LEFT_OUT.result(
        (checkpoint.fingerprint, sentence, pads),
        lambda _: leave_one_out(checkpoint, sentence, pads=pads),
        doing=common("wait.leave_out"),
    )
