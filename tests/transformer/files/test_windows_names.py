"""File names on Windows: what may be uploaded, the files of this repository, and a setting."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path, PureWindowsPath

import pytest

from tests.conftest import ROOT
from transformer import CheckpointError
from transformer.config import ModelConfig
from transformer.files.fetch import is_plain_name
from transformer.files.received_files import FOREIGN_BYTES, MAX_BYTES, receive
from transformer.files.snapshots import is_snapshot
from transformer.training.recipe import Recipe
from ui.compute import loading

HOSTILE = (
    *(r"..\config.json", r"C:\Windows\win.ini", "C:config.json", r"\\host\share\config.json", r"a\b.json"),
    *("config.json:stream", "config.json::$DATA", "CON", "nul.json", "aux.safetensors", "com1.json", "lpt9.txt"),
    *("config.json.", "config.json ", "CONFIG.JSON", "config.json\x00.txt", "config?.json", "con<fig>.json"),
    *("config\u202e.json", "model.safetensors\n", "/config.json", "../config.json", "..", ".", ""),
)


def is_plain(name: str) -> bool:
    """Return whether Windows takes it for one file in the folder itself."""
    path = PureWindowsPath(name)
    odd = re.search(r'[<>:"|?*\\/\x00-\x1f]', name)
    return (
        name != ""
        and path.name == name
        and not path.is_reserved()
        and not odd
        and not name.endswith((".", " "))
        and name != ".."
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_of_such_a_name_is_refused_before_a_byte_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError):
        receive({"config.json": b"{}", "model.safetensors": b"", "tokenizer.json": b"{}", name: b"x"}, tmp_path / "in")
    assert not list(tmp_path.rglob("*"))


def test_what_is_accepted_is_a_plain_name_everywhere() -> None:
    assert all(is_plain(name) for name in (*MAX_BYTES, *FOREIGN_BYTES))
    assert not any(is_plain(name) for name in HOSTILE if name not in ("CONFIG.JSON", "config\u202e.json"))


@pytest.mark.parametrize("name", HOSTILE)
def test_such_a_name_is_neither_fetched_nor_a_snapshot_nor_a_run(name: str) -> None:
    assert not is_plain_name(name) or is_plain(name)
    assert not is_snapshot(name)
    if not is_plain(name):
        model = ModelConfig(
            kind="decoder-only",
            vocabulary_size=10,
            d_model=4,
            n_heads=2,
            d_ff=4,
            n_encoder_layers=0,
            n_decoder_layers=1,
        )
        with pytest.raises(ValueError, match="name is"):
            Recipe(name=name, task="next-token", corpus="c", model=model)


@pytest.mark.parametrize("name", [r"..\en-fr", r"C:\checkpoints\en-fr", r"\\host\share", "en-fr:x", r"a\..\en-fr"])
def test_an_address_that_names_a_path_names_no_checkpoint(checkpoints_folder: Path, name: str) -> None:
    assert name not in loading.choosable_checkpoints(name)


def test_folders_of_a_setting_are_divided_as_the_system_divides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    loading._folders.cache_clear()
    monkeypatch.setattr(os, "pathsep", ";")
    assert [str(path) for path in loading._folders(r"C:\mine;D:\other")] == [r"C:\mine", r"D:\other"]
    loading._folders.cache_clear()


def test_the_repository_can_be_checked_out_on_windows() -> None:
    """No name is invalid on Windows, and no two differ only in case."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    files = listed.stdout.decode("utf-8").rstrip("\0").split("\0")
    assert [file for file in files if not all(is_plain(part) for part in file.split("/"))] == []
    assert len({file.casefold() for file in files}) == len(files)
    assert max(map(len, files)) < 150, "with a folder of one's own in front, 260 characters are the end"
