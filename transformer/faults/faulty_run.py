"""A run of a checkpoint beside the same run with a bug of its forward pass, and all checks on either."""

from collections.abc import Mapping
from dataclasses import replace

from transformer.faults.catalogue import HEALTHY
from transformer.faults.checked_models import CheckedModel
from transformer.faults.fault_checks import CHECKS, PADS, Finding
from transformer.faults.forward_faults import inject_fault
from transformer.interventions.experiment import Experiment, experiment
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.run import Run
from transformer.runs.traces import Trace


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
        run: A run without edits.
        n_tokens: The number of tokens of its source without padding; 0 for a model without an encoder.
    """
    if not n_tokens:
        return run
    most = run.checkpoint.config.max_length - n_tokens
    return replace(run, source_pads=max(0, min(max(PADS, run.source_pads), most)))


def all_findings(checked: CheckedModel) -> Mapping[str, Finding | None]:
    """Run all checks on one model; return each finding, or ``None`` where the check does not apply."""
    return {name: check(checked) for name, check in CHECKS.items()}
