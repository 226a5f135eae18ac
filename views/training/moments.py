"""The model at earlier steps of its training, and one sentence at each of them: kept between reruns, read-only."""

from __future__ import annotations

import streamlit as st

import transformer
from transformer.analysis.development import Moment, moment_of
from transformer.files.snapshots import snapshot_file, snapshot_steps
from transformer.runs.traces import Trace
from ui.compute.loading import checkpoint_names, checkpoints_folder


def with_snapshots() -> tuple[str, ...]:
    """The names of the checkpoints that came with snapshots."""
    return tuple(name for name in checkpoint_names() if snapshot_steps(checkpoints_folder() / name))


def moment(
    checkpoint: transformer.Checkpoint,
    step: int | None,
    trace: Trace,
    *,
    final: bool,
    sentence: str,
    target: str,
    pads: int,
) -> Moment:
    """``trace`` (of ``sentence``, ``target`` and ``pads``) as the model was at ``step``; see ``moment_of``.

    ``final``: the step is the checkpoint's own, so that there is no snapshot to open.
    Raises ``transformer.CheckpointError`` for a snapshot that is broken.
    """
    stamp = version(checkpoint, step, final=final)
    return _moment(
        checkpoint.fingerprint, step, stamp, sentence, target, pads, _checkpoint=checkpoint, _trace=trace, _final=final
    )


# A moment holds the attention of all heads: 0.1 MB for ten tokens. 112 of them are 16 sentences at 7 steps.
@st.cache_resource(max_entries=112, show_spinner=False)
def _moment(
    fingerprint: str,
    step: int | None,
    stamp: tuple[int, ...],
    sentence: str,
    target: str,
    pads: int,
    *,
    _checkpoint: transformer.Checkpoint,
    _trace: Trace,
    _final: bool,
) -> Moment:
    model = _checkpoint if _final else _snapshot(fingerprint, step, stamp, _checkpoint=_checkpoint)
    return moment_of(model, step, _trace)


# One model of en-fr takes 28 MB in memory, so eight are at most 230 MB, once for all sessions.
@st.cache_resource(max_entries=8, show_spinner=False)
def _snapshot(
    fingerprint: str, step: int, stamp: tuple[int, ...], *, _checkpoint: transformer.Checkpoint
) -> transformer.Checkpoint:
    return transformer.snapshot(_checkpoint, step)


def version(checkpoint: transformer.Checkpoint, step: int | None, *, final: bool) -> tuple[int, ...]:
    """Size and time of change of a snapshot's file: one that was written again is another one."""
    if final:
        return ()
    status = (checkpoint.path / snapshot_file(step)).stat()
    return status.st_size, status.st_mtime_ns
