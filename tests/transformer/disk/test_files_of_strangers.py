"""Third-party files are read only up to a limit, and only if they are regular files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from transformer.disk import plain_files
from transformer.disk.gguf_file import is_gguf
from transformer.files.model_card import best_row, checkpoint_step
from transformer.runs.trace_files import read_trace
from transformer.text.sentence_files import read_sentences
from transformer.training.recipe import load_recipe


def endless(file: Path, kind: str) -> None:
    file.unlink(missing_ok=True)
    if kind == "pipe":  # opening it blocks until something is written
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")


@pytest.fixture(params=["device", "pipe"])
def kind(request: pytest.FixtureRequest) -> str:
    if not Path("/dev/zero").exists():
        pytest.skip("a system without devices in files")
    return request.param


@pytest.mark.parametrize("read", [load_recipe, read_trace])
def test_a_file_without_an_end_is_refused(tmp_path: Path, kind: str, read: Callable) -> None:
    endless(tmp_path / "file", kind)
    with pytest.raises(ValueError, match="is not a regular file"):
        read(tmp_path / "file")


def test_nobody_waits_at_a_pipe_to_see_what_it_is(tmp_path: Path, kind: str) -> None:
    endless(tmp_path / "model.gguf", kind)
    assert not is_gguf(tmp_path / "model.gguf")
    endless(tmp_path / "history.csv", kind)
    assert best_row(tmp_path / "history.csv") is None and checkpoint_step(tmp_path) is None


@pytest.mark.parametrize("read", [load_recipe, read_sentences, best_row])
def test_a_text_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable) -> None:
    (tmp_path / "file").write_text("step,dev_score\n1,2\n", encoding="utf-8")
    monkeypatch.setattr(plain_files, "MAX_TEXT_BYTES", 5)
    monkeypatch.setattr(plain_files.read_plain, "__defaults__", (5,))
    monkeypatch.setattr(plain_files.read_plain_text, "__defaults__", (5,))
    with pytest.raises(ValueError, match="has more than 5 bytes"):
        read(tmp_path / "file")
