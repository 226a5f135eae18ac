"""Experiments on the page's run, computed once for all sessions."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from transformer.errors import NotFiniteError
from transformer.files.checkpoints import Checkpoint
from transformer.interventions.experiment import Experiment, experiment
from transformer.runs.edit_specs import edits_from
from transformer.runs.run import Run
from ui.compute.loading import load_trace
from ui.compute.store import store

Change = TypeVar("Change")
_TRIES = 8  # changes that a page tries before it shows the first of them


def experiment_with(
    run: Run,
    specs: tuple[str, ...] = (),
    *,
    checkpoint: Checkpoint | None = None,
    sentence: str | None = None,
    keep_answer: bool = False,
) -> Experiment:
    """Return a run compared with the same run under a change; by default with itself.

    Args:
        run: The original run; its own output is ``experiment_with(run).answer_before``.
        specs: Edits as strings (``transformer.runs.edit_specs``).
        checkpoint: Another file of the same model.
        sentence: Another sentence, for which the model generates its own output.
        keep_answer: Whether the other sentence, of the same length, is read with the original output instead.
    """
    if sentence is not None and not keep_answer:
        return experiment_beside(run, replace(run, sentence=sentence, target=None))
    other = () if checkpoint is None else (("checkpoint", checkpoint.fingerprint),)
    if sentence is not None:
        other += (("same answer", sentence),)

    def make() -> Experiment:
        edits = edits_from(checkpoint or run.checkpoint, specs)
        kept = keep_answer and sentence is not None
        return experiment(load_trace(run), edits, checkpoint=checkpoint, sentence=sentence, keep_answer=kept)

    return store.get(run, ("experiment", *specs, *other), make)


def tried(run: Run, changes: Iterable[tuple[Change, tuple[str, ...]]]) -> Iterator[tuple[Change, Experiment, bool]]:
    """Yield the first changes, each with its experiment and whether the model's own output changes.

    Each change comes with its edits as strings. One whose run is not finite is left out. For a third-party model, whose
    passes may be slow, only the first change is tried.
    """
    for change, specs in islice(changes, 1 if run.checkpoint.is_guest else _TRIES):
        try:
            found = experiment_with(run, specs)
            is_other = found.predicts_otherwise
        except NotFiniteError:
            continue
        yield change, found, is_other


def experiment_beside(run: Run, other: Run) -> Experiment:
    """Return a run compared with any other one, such as another model on the same sentence."""
    return store.get(run, ("experiment", "beside", other), lambda: Experiment(load_trace(run), load_trace(other)))
