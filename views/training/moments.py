"""One sentence at the steps of a training: cached between reruns and read-only."""

from collections.abc import Callable, Sequence
from typing import Literal

import streamlit as st

import transformer
from charts.toolkit.numbers import whole
from transformer.errors import CheckpointError
from transformer.files.model_card import began_as, checkpoint_step
from transformer.files.snapshots import snapshot_path, snapshot_steps
from transformer.files.untrained import can_be_untrained, untrained
from transformer.heads.sentence_through_training import Moment, moment_of, training_steps
from transformer.runs.traces import Trace
from ui.compute.jobs import jobs
from ui.compute.loading import checkpoint_names, checkpoints_folder
from ui.compute.store import store
from ui.page.page import Page
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain

RANDOM: Literal["random"] = "random"  # the model before any training
Step = int | None | Literal["random"]
_FEW_TOKENS = 12  # that a model with random weights writes: it would go on to any limit


def shown_steps(checkpoint: transformer.Checkpoint) -> tuple[Step, ...]:
    """Return random weights, the steps of all snapshots, and the checkpoint's own step.

    A run whose first snapshot is of random weights needs no others. Without random weights or snapshots, the result is
    empty: there is nothing to compare the model with.
    """
    steps: tuple[Step, ...] = training_steps(checkpoint)
    is_from_scratch = bool(steps) and steps[0] == 0 and began_as(checkpoint.card) is None
    if not can_be_untrained(checkpoint) or is_from_scratch:
        return steps
    return (RANDOM, *(steps or (checkpoint_step(checkpoint.path),)))


def moments_at(p: Page, steps: Sequence[Step]) -> list[Moment]:
    """Return the moments, with the finished model last; long computations can be cancelled.

    Snapshots that cannot be opened are left out; ``say_what_is_broken`` names them.
    """
    return _moments_and_problems(p, steps)[0]


def say_what_is_broken(p: Page, steps: Sequence[Step]) -> None:
    """Name the snapshots at ``steps`` that cannot be opened, each in a sentence."""
    for error in _moments_and_problems(p, steps)[1]:
        st.warning(p.text["time_broken"].format(problem=as_plain(problem_text(error))), icon=":material/broken_image:")


def _moments_and_problems(p: Page, steps: Sequence[Step]) -> tuple[list[Moment], list[CheckpointError]]:
    trace = p.trace

    def progress(step: Step) -> str:
        if step == RANDOM:
            return p.text["time_progress_random"]
        return p.text["time_progress"].format(step=p.text["time_final"] if step is None else whole(step))

    def work(report: Callable[[int, int], None]) -> tuple[list[Moment], list[CheckpointError]]:
        found, problems = [], []
        for index, step in enumerate(steps):
            report(index, len(steps))
            try:
                found.append(moment(trace, step, final=index == len(steps) - 1))
            except CheckpointError as error:
                problems.append(error)
        return found, problems

    versions = [version(p.checkpoint, step, final=index == len(steps) - 1) for index, step in enumerate(steps)]
    found = jobs.result(
        trace.run,
        ("time-lapse", *steps, *versions),
        work,
        saying=lambda done, _: progress(steps[done]),
    )
    if found is None:
        p.finish()
    return found


def with_snapshots() -> tuple[str, ...]:
    """Return the names of the checkpoints with snapshots."""
    return tuple(name for name in checkpoint_names() if snapshot_steps(checkpoints_folder() / name))


def moment(trace: Trace, step: Step, *, final: bool) -> Moment:
    """Return the results of the model at ``step`` on the tokens of ``trace``.

    Args:
        trace: The run of the finished model.
        step: The training step, or ``RANDOM``.
        final: Whether the step is the checkpoint's own, so that there is no snapshot to open.

    Raises:
        CheckpointError: For a snapshot that is broken.
    """
    checkpoint = trace.checkpoint
    stamp = version(checkpoint, step, final=final)

    def make() -> Moment:
        earlier = ("snapshot", step, stamp)
        if step == RANDOM:
            model = store.get(checkpoint, earlier, lambda: untrained(checkpoint))
            return moment_of(model, None, trace, max_new_tokens=_FEW_TOKENS)
        model = checkpoint if final else store.get(checkpoint, earlier, lambda: transformer.snapshot(checkpoint, step))
        return moment_of(model, step, trace)

    return store.get(trace.run, ("moment", step, stamp), make)


def version(checkpoint: transformer.Checkpoint, step: Step, *, final: bool) -> tuple[int, ...]:
    """Return size and modification time of a snapshot's file, which show whether it was rewritten."""
    if final or step == RANDOM:
        return ()
    status = snapshot_path(checkpoint.path, step).stat()
    return status.st_size, status.st_mtime_ns
