"""The model at earlier steps of its training, and one sentence at each of them: kept between reruns, read-only."""

import transformer
from transformer.files.snapshots import snapshot_file, snapshot_steps
from transformer.roles.development import Moment, moment_of
from transformer.runs.traces import Trace
from ui.compute.loading import checkpoint_names, checkpoints_folder
from ui.compute.store import store


def with_snapshots() -> tuple[str, ...]:
    """The names of the checkpoints that came with snapshots."""
    return tuple(name for name in checkpoint_names() if snapshot_steps(checkpoints_folder() / name))


def moment(trace: Trace, step: int | None, *, final: bool) -> Moment:
    """What ``trace`` reads as the model was at ``step``; see ``moment_of``.

    ``final``: the step is the checkpoint's own, so that there is no snapshot to open.
    Raises ``transformer.CheckpointError`` for a snapshot that is broken.
    """
    checkpoint = trace.checkpoint
    stamp = version(checkpoint, step, final=final)

    def make() -> Moment:
        earlier = ("snapshot", step, stamp)
        model = checkpoint if final else store.get(checkpoint, earlier, lambda: transformer.snapshot(checkpoint, step))
        return moment_of(model, step, trace)

    return store.get(trace.run, ("moment", step, stamp), make)


def version(checkpoint: transformer.Checkpoint, step: int | None, *, final: bool) -> tuple[int, ...]:
    """Size and time of change of a snapshot's file: one that was written again is another one."""
    if final:
        return ()
    status = (checkpoint.path / snapshot_file(step)).stat()
    return status.st_size, status.st_mtime_ns
