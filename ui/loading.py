"""Checkpoints and traces, loaded once and shared by all browser sessions: nothing in here may be changed by anyone."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import pandas as pd
import streamlit as st

import transformer
from transformer.config import ModelConfig
from transformer.received import is_received
from ui.text import Spoken
from ui.uploads import is_here, own_uploads, uploads_folder

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER_VARIABLE = "GLASSFORMER_CHECKPOINTS"
THREADS_VARIABLE = "GLASSFORMER_THREADS"
FAVOURITE = "en-fr"
_FILES = ("config.json", "model.safetensors", "tokenizer.json")


def checkpoints_folder() -> Path:
    """``checkpoints/`` of the repository, or what GLASSFORMER_CHECKPOINTS says."""
    return Path(os.environ.get(FOLDER_VARIABLE) or REPOSITORY / "checkpoints")


def checkpoint_names() -> tuple[str, ...]:
    """Folders that hold a checkpoint; the first is the one that the app opens with, a translator where there is one."""
    folder = checkpoints_folder()
    if not folder.is_dir():
        return ()
    found = sorted(path.name for path in folder.iterdir() if (path / _FILES[0]).is_file())
    return tuple(sorted(found, key=lambda name: (name != FAVOURITE, not _translates(name))))


def choosable_checkpoints(focused: str = "") -> tuple[str, ...]:
    """``checkpoint_names``, what this session has uploaded, and the upload that its address names."""
    named = (focused,) if is_here(focused) else ()
    return tuple(dict.fromkeys((*checkpoint_names(), *own_uploads(), *named)))


def checkpoint_path(name: str) -> Path:
    """The directory of a checkpoint, be it one that lies in ``checkpoints_folder`` or an upload."""
    return (uploads_folder() if is_received(name) else checkpoints_folder()) / name


def load_checkpoint(name: str) -> transformer.Checkpoint:
    """The checkpoint of that name; read again when one of its files has changed.

    Raises ``transformer.CheckpointError`` when its files are missing or do not fit together.
    """
    path = checkpoint_path(name)
    return _load(str(path), _stamp(path))


def load_trace(name: str, *, sentence: str, target: str = "", pads: int = 0) -> transformer.Trace:
    """The trace of one sentence (teacher-forced when there is a target), read-only, from the cache where possible.

    Raises ``transformer.InputError`` for a text that the model cannot take.
    """
    checkpoint = load_checkpoint(name)
    return _trace(checkpoint.fingerprint, sentence, target, pads, _checkpoint=checkpoint)


def load_history(name: str) -> pd.DataFrame | None:
    """The training curves of a checkpoint (its ``history.csv``), or ``None`` where it came without."""
    path = checkpoint_path(name) / "history.csv"
    return pd.read_csv(path) if path.is_file() else None


def config_of(name: str) -> ModelConfig:
    """The configuration alone, without the weights. Raises ``ValueError`` when it is missing or wrong."""
    path = checkpoint_path(name) / "config.json"
    return _config(path, _stamp(path.parent))


def _translates(name: str) -> bool:
    try:
        return config_of(name).kind == "encoder-decoder"
    except (OSError, ValueError):
        return False


def _stamp(path: Path) -> tuple[tuple[int, int], ...]:
    """Size and time of change of every file: another training run under the same name is another checkpoint."""
    return tuple(
        (status.st_size, status.st_mtime_ns) if (path / file).is_file() and (status := (path / file).stat()) else (0, 0)
        for file in _FILES
    )


@lru_cache(maxsize=32)
def _config(path: Path, _changed: tuple) -> ModelConfig:
    return ModelConfig.from_json(path)


@st.cache_resource(max_entries=8, show_spinner=Spoken("wait.open"))
def _load(path: str, changed: tuple) -> transformer.Checkpoint:
    set_threads()
    return transformer.load(path)


@st.cache_resource(max_entries=64, show_spinner=Spoken("wait.trace"))
def _trace(
    fingerprint: str, sentence: str, target: str, pads: int, *, _checkpoint: transformer.Checkpoint
) -> transformer.Trace:
    return transformer.trace(_checkpoint, sentence, target=target or None, source_pads=pads)


@lru_cache(maxsize=1)
def set_threads() -> None:
    """One thread per forward pass unless GLASSFORMER_THREADS says otherwise: thirty sessions fight for the cores."""
    import torch

    torch.set_num_threads(max(1, int(os.environ.get(THREADS_VARIABLE) or 1)))
