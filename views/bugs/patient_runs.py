"""The healthy run and the patient's, as the page on bugs shows and checks them; from the cache, for all sessions."""

from dataclasses import replace

from transformer.faults.catalogue import HEALTHY, TRAINING, Diagnosis
from transformer.faults.fault_checks import CHECKS, PADS, Finding
from transformer.faults.forward_faults import with_fault
from transformer.faults.patients import Patient, patient_in_training, patient_of
from transformer.faults.training_faults import HEALTHY as HEALTHY_TRAINING
from transformer.faults.training_faults import TrainedToy, trained_toy
from transformer.interventions.experiment import Experiment, experiment
from transformer.runs.decoding_strategies import Greedy
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.shell.page import Page

WORD = "gradient"


def experiment_on(p: Page, fault: str) -> Experiment:
    """Return the focused sentence without the mistake and with it. Every patient is padded: padding reveals nothing."""
    run, fault = replace(p.run, source_pads=pads_of(p)), "" if fault == HEALTHY else fault

    def make() -> Experiment:
        faulty, edits = with_fault(run.checkpoint, fault)
        # A patient may never end by itself; its answer shows long before.
        longest = Greedy(2 * len(p.trace.tokens(p.trace.stacks[0])) + 10) if run.checkpoint.config.has_decoder else None
        found = experiment(load_trace(run), edits, checkpoint=faulty, strategy=longest)
        _ = found.answer_before, found.answer_after  # written here, while the page says that it computes
        return found

    return store.get(run, ("experiment", "fault", fault), make, wait="wait.patient")


def pads_of(p: Page) -> int:
    """Padding behind the sentence, as much as the model can read, but no more than is needed to see it."""
    if p.trace.source is None:
        return 0
    plain = len(p.trace.source) - p.focus.pads
    return max(0, min(max(PADS, p.focus.pads), p.checkpoint.config.max_length - plain))


def toy_of(diagnosis: Diagnosis) -> TrainedToy:
    return trained_toy(TRAINING.get(diagnosis.fault, HEALTHY_TRAINING))


def findings(p: Page, diagnosis: Diagnosis) -> tuple[dict[str, Finding | None], dict[str, Finding | None]]:
    """All checks on the patient, and the same on the healthy one."""
    if diagnosis.in_training:
        return tuple(
            _all(patient_in_training(toy_of(one).learner, WORD)) for one in (diagnosis, Diagnosis(HEALTHY, True))
        )
    return _live(p, "" if diagnosis.fault == HEALTHY else diagnosis.fault), _live(p, "")


def _live(p: Page, fault: str) -> dict[str, Finding | None]:
    return store.get(p.run, ("findings", fault), lambda: _all(patient_of(p.trace, fault)), wait="wait.examine")


def _all(patient: Patient) -> dict[str, Finding | None]:
    return {name: check(patient) for name, check in CHECKS.items()}
