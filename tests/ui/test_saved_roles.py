"""Stored roles of a checkpoint are read once, until their file changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import transformer
from transformer.errors import CheckpointError
from transformer.heads.head_roles import corpus_roles
from transformer.heads.role_files import FILE, load_corpus_roles, save_corpus_roles
from ui.compute import saved_roles as module
from ui.compute.saved_roles import saved_roles

SENTENCES = ("The cat sat on the mat.", "He told us a story about a dog.")


def test_the_file_is_read_once_until_it_changes(
    checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def counted(checkpoint: transformer.Checkpoint) -> object:
        read.append(checkpoint.path)
        return load_corpus_roles(checkpoint)

    monkeypatch.setattr(module, "load_corpus_roles", counted)
    shutil.copytree(checkpoints_folder / "tiny-gpt", tmp_path / "tiny-gpt")
    checkpoint = transformer.load(tmp_path / "tiny-gpt")
    assert saved_roles(checkpoint) is None
    save_corpus_roles(checkpoint, corpus_roles(checkpoint, SENTENCES), sentence_file="mine.txt")
    read.clear()
    first = saved_roles(checkpoint)
    assert first.sentence_file == "mine.txt" and first.roles.n_sentences == 2
    assert saved_roles(checkpoint) is first and len(read) == 1
    save_corpus_roles(checkpoint, corpus_roles(checkpoint, SENTENCES[:1]), sentence_file="mine.txt")
    _make_newer(tmp_path / "tiny-gpt" / FILE)
    assert saved_roles(checkpoint).roles.n_sentences == 1 and len(read) == 2
    (tmp_path / "tiny-gpt" / FILE).write_text("{", encoding="utf-8")
    _make_newer(tmp_path / "tiny-gpt" / FILE)
    for _ in range(2):
        with pytest.raises(CheckpointError, match="is not a complete file of head roles"):
            saved_roles(checkpoint)


def _make_newer(path: Path) -> None:
    """With a coarse file-system clock, two writes may have the same time."""
    later = path.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(later, later))
