"""Every text file of a checkpoint is read only up to a limit, and only if it is a regular file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import transformer
from transformer.disk import plain_files
from transformer.disk.plain_files import json_object, read_plain
from transformer.files.model_card import card_of

ENDLESS = Path("/dev/zero")


@pytest.mark.skipif(not ENDLESS.exists(), reason="a system without devices in files")
@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "README.md"])
def test_a_link_to_what_has_no_end_is_refused(checkpoints_folder: Path, tmp_path: Path, file: str) -> None:
    folder = tmp_path / "endless"
    shutil.copytree(checkpoints_folder / "tiny-gpt", folder)
    (folder / file).unlink(missing_ok=True)
    (folder / file).symlink_to(ENDLESS)
    if file == "README.md":
        assert card_of(folder) == ""
        assert transformer.load(folder).card == ""
        return
    with pytest.raises(transformer.CheckpointError):
        transformer.load(folder)


@pytest.mark.skipif(not ENDLESS.exists(), reason="a system without devices in files")
def test_an_object_is_not_read_from_a_device(tmp_path: Path) -> None:
    (tmp_path / "config.json").symlink_to(ENDLESS)
    with pytest.raises(ValueError, match="is not a regular file"):
        json_object(tmp_path / "config.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes")
def test_a_pipe_that_nobody_writes_to_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ValueError, match="is not a regular file"):
        json_object(tmp_path / "config.json")


def test_a_file_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert read_plain(tmp_path / "a", 10) == b"x" * 10
    with pytest.raises(ValueError, match="has more than 9 bytes"):
        read_plain(tmp_path / "a", 9)
    with pytest.raises(OSError):
        read_plain(tmp_path / "none")
    assert plain_files.MAX_TEXT_BYTES < 100_000_000
