"""Folders with an invalid index of shards are refused, and nothing outside the folder is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from transformer import CheckpointError
from transformer.guests.folder import INDEX, WEIGHTS

ONE, OTHER = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two shards, and a file beside the folder that must not be read."""
    path = foreign_checkpoint("hf-gpt2", tmp_path / "models")
    tensors = load_file(path / WEIGHTS)
    names = sorted(tensors)
    half = len(names) // 2
    save_file({name: tensors[name] for name in names[:half]}, path / ONE)
    save_file({name: tensors[name] for name in names[half:]}, path / OTHER)
    (path / WEIGHTS).rename(tmp_path / "models" / "secret.safetensors")
    index(path, {name: ONE if at < half else OTHER for at, name in enumerate(names)})
    return path


def index(folder: Path, weight_map: object) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def refused(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        transformer.load(folder)
    assert len(str(caught.value)) < 1500
    return str(caught.value)


def test_whole_shards_are_read(folder: Path) -> None:
    assert transformer.load(folder).config.n_decoder_layers


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.safetensors", "/etc/passwd", "..", ".", "", "a/b.safetensors", "model.bin", "x\x00.safetensors"),
        *("x" * 5000 + ".safetensors", "missing.safetensors", "~/x.safetensors", "\ud800.safetensors"),
        *(7, None, [ONE], {"a": ONE}, True, 1e400),
    ],
)
def test_a_shard_that_is_no_file_of_the_folder(folder: Path, name: object) -> None:
    index(folder, {"a": ONE, "b": OTHER, "c": name})
    assert INDEX in refused(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"7", b"{}", b"\xff", b'{"weight_map": []}', b'{"weight_map": "x"}', b'{"weight_map": null}',
     b'{"weight_map": {}}', b"[" * 10**5, b'{"weight_map": {"a": ' + b"[" * 10**5],
)  # fmt: skip
def test_an_index_that_is_none(folder: Path, content: bytes) -> None:
    (folder / INDEX).write_bytes(content)
    refused(folder)


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to a device", "link to nothing"])
@pytest.mark.parametrize("name", [ONE, INDEX])
def test_what_is_no_regular_file(folder: Path, name: str, kind: str) -> None:
    path = folder / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "link to a device" else "/no/such/file")
    refused(folder)


def test_shards_that_do_not_make_a_whole(folder: Path) -> None:
    weight_map = json.loads((folder / INDEX).read_text())["weight_map"]
    index(folder, dict.fromkeys(weight_map, ONE))
    assert "lacks" in refused(folder)
    index(folder, weight_map)
    tensors = load_file(folder / ONE)
    save_file(tensors | {next(iter(load_file(folder / OTHER))): next(iter(tensors.values())).clone()}, folder / ONE)
    assert "twice" in refused(folder)
    (folder / ONE).write_bytes((folder / ONE).read_bytes()[:-1])
    assert ONE in refused(folder)
