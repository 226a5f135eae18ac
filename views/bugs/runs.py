"""The healthy run and the patient's, as the page on bugs shows and checks them; from the cache, for all sessions."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

import transformer
from transformer.analysis.answers.answer_probabilities import Answer
from transformer.analysis.answers.effects import answer_under, same_tokens
from transformer.faults.catalogue import HEALTHY, TRAINING, Diagnosis
from transformer.faults.checks import CHECKS, PADS, Finding
from transformer.faults.forward_faults import with_fault
from transformer.faults.patients import Patient, patient_in_training, patient_of
from transformer.faults.training_faults import HEALTHY as HEALTHY_TRAINING
from transformer.faults.training_faults import TrainedToy, trained_toy
from transformer.runs.strategies import Greedy
from transformer.runs.traces import Trace
from ui.compute.loading import load_trace
from ui.shell.page import Page
from ui.words.texts import Spoken

WORD = "gradient"


@dataclass(frozen=True)
class Runs:
    """Both over the same tokens, padded; ``before`` and ``after``: what each answers by itself."""

    healthy: Trace
    patient: Trace
    before: Answer
    after: Answer


def runs_of(p: Page, fault: str) -> Runs:
    """The focused sentence with the mistake and without. Every patient is padded, so padding reveals nothing."""
    checkpoint, focus = p.checkpoint, p.focus
    target = focus.target if checkpoint.config.has_decoder else ""
    key = (checkpoint.fingerprint, focus.sentence, target, pads_of(p), "" if fault == HEALTHY else fault)
    return _runs(*key, _page=p)


def pads_of(p: Page) -> int:
    """Padding behind the sentence, as much as the model can read, but no more than is needed to see it."""
    if p.trace.source is None:
        return 0
    plain = len(p.trace.source) - p.focus.pads
    return max(0, min(max(PADS, p.focus.pads), p.checkpoint.config.max_length - plain))


@st.cache_resource(max_entries=64, show_spinner=Spoken("wait.patient"))
def _runs(fingerprint: str, sentence: str, target: str, pads: int, fault: str, *, _page: Page) -> Runs:
    checkpoint = _page.checkpoint
    healthy = load_trace(_page.focus.checkpoint, sentence=sentence, target=target, pads=pads)
    faulty, edits = with_fault(checkpoint, fault)
    # A patient may never end by itself; its answer shows long before.
    longest = Greedy(2 * len(_page.trace.tokens(_page.trace.stacks[0])) + 10) if checkpoint.config.has_decoder else None
    return Runs(
        healthy=healthy,
        patient=same_tokens(healthy, edits, checkpoint=faulty),
        before=answer_under(checkpoint, sentence, (), pads=pads, strategy=longest),
        after=answer_under(faulty, sentence, edits, pads=pads, strategy=longest),
    )


def toy_of(diagnosis: Diagnosis) -> TrainedToy:
    return trained_toy(TRAINING.get(diagnosis.fault, HEALTHY_TRAINING))


def findings(p: Page, diagnosis: Diagnosis) -> tuple[dict[str, Finding | None], dict[str, Finding | None]]:
    """All checks on the patient, and the same on the healthy one."""
    if diagnosis.in_training:
        return tuple(
            _all(patient_in_training(toy_of(one).learner, WORD)) for one in (diagnosis, Diagnosis(HEALTHY, True))
        )
    focus = p.focus
    target = focus.target if p.checkpoint.config.has_decoder else ""
    key = (p.checkpoint.fingerprint, focus.sentence, target)
    fault = "" if diagnosis.fault == HEALTHY else diagnosis.fault
    return _live(*key, fault, _checkpoint=p.checkpoint, _trace=p.trace), _live(
        *key, "", _checkpoint=p.checkpoint, _trace=p.trace
    )


@st.cache_resource(max_entries=64, show_spinner=Spoken("wait.examine"))
def _live(
    fingerprint: str, sentence: str, target: str, fault: str, *, _checkpoint: transformer.Checkpoint, _trace: Trace
) -> dict[str, Finding | None]:
    return _all(patient_of(_trace, fault))


def _all(patient: Patient) -> dict[str, Finding | None]:
    return {name: check(patient) for name, check in CHECKS.items()}
