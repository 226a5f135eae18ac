"""Files that change while they are read, and limits of what is read."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.transformer.guests.gguf_files import whole_gguf
from tests.transformer.guests.tiny_guests import guest_checkpoint
from transformer.disk import plain_files
from transformer.disk.config_limits import check_config
from transformer.disk.gguf_file import GgufFile, is_gguf
from transformer.disk.plain_files import read_plain
from transformer.disk.tensor_files import TensorFile
from transformer.errors import CheckpointError
from transformer.files.model_card import best_row, checkpoint_step
from transformer.system.python_process import start_python

# Truncates each file to a third and restores it, repeatedly, while another thread loads its checkpoint.
DISTURBED = """
import sys, threading, time
from pathlib import Path
import transformer
N_LOADS = 4  # at least
def disturb(file, stop):
    content = file.read_bytes()
    with open(file, "r+b", buffering=0) as opened:
        while not stop.is_set():
            opened.truncate(len(content) // 3)
            time.sleep(0.002)
            opened.seek(0)
            opened.write(content)
            time.sleep(0.002)
for place, file in zip(map(Path, sys.argv[1::2]), map(Path, sys.argv[2::2])):
    whole, stop = transformer.load(place).model.n_parameters, threading.Event()
    thread = threading.Thread(target=disturb, args=(file, stop), daemon=True)
    thread.start()
    n_loads = n_refused = 0
    while n_loads < N_LOADS or not n_refused:
        n_loads += 1
        assert n_loads < 100, "the file was never cut while it was read"
        try:
            assert transformer.load(place).model.n_parameters == whole
        except transformer.CheckpointError:
            n_refused += 1
    stop.set()
    thread.join()
"""


@pytest.mark.slow
def test_a_file_that_is_cut_and_rewritten_while_it_is_loaded(tmp_path: Path) -> None:
    gguf = whole_gguf(tmp_path / "model.gguf", sizes={"n_embd": 240})
    folder = guest_checkpoint("gpt2", tmp_path, n_embd=240)
    places = [gguf, gguf, folder, folder / "model.safetensors"]
    process = start_python("-c", DISTURBED, *map(str, places), stderr=subprocess.PIPE, text=True)
    problems = process.communicate(timeout=300)[1]
    assert process.returncode == 0, (process.returncode, problems[-1000:])


def test_a_safetensors_file_that_is_cut_between_header_and_numbers(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    save_file({"a": torch.ones(5000), "b": torch.ones(7000, dtype=torch.bfloat16)}, file)
    with (
        pytest.raises(CheckpointError, match="is not a complete safetensors file: it ends too early"),
        TensorFile(file) as opened,
    ):
        os.truncate(file, 1000)
        opened.read("b")


def test_a_safetensors_file_that_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    save_file({"a": torch.ones(5000)}, file)
    with (
        pytest.raises(CheckpointError, match="it was changed while it was read; open it again"),
        TensorFile(file) as opened,
    ):
        opened.read("a")
        with open(file, "r+b") as other:
            other.seek(-1, os.SEEK_END)
            other.write(b"x")


def test_a_safetensors_file_that_is_replaced_is_read_to_its_end(tmp_path: Path) -> None:
    file, other = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    save_file({"a": torch.ones(5000)}, file)
    save_file({"a": torch.zeros(5000)}, other)
    with TensorFile(file) as opened:
        other.replace(file)
        assert opened.read("a").sum() == 5000


def test_a_gguf_file_that_is_cut_overwritten_or_replaced(tmp_path: Path) -> None:
    file = whole_gguf(tmp_path / "model.gguf")
    content = file.read_bytes()
    opened = GgufFile(file)
    name = next(iter(opened.tensors))
    whole = opened.read(name)
    (tmp_path / "other").write_bytes(content[:100])
    (tmp_path / "other").replace(file)
    assert (opened.read(name) == whole).all(), "the file that was opened is still there"
    file.write_bytes(content)
    opened = GgufFile(file)
    os.truncate(file, 3000)
    with pytest.raises(CheckpointError, match="it ends too early"):
        opened.read(name)
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match="it was changed while it was read; open it again"):
        opened.read(name)


def test_an_error_of_a_header_leaves_the_file_closed(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes((2**40).to_bytes(8, "little") + bytes(8))
    with pytest.raises(CheckpointError) as found, TensorFile(file):
        pass
    opened = [os.path.realpath(link) for link in Path("/proc/self/fd").glob("*")]  # Linux only
    assert str(file) not in opened, f"the error keeps the file open: {found.value}"


def test_every_type_that_torch_knows_is_read(tmp_path: Path) -> None:
    tensors = {
        str(type): torch.arange(6).reshape(2, 3).to(type)
        for type in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8)
    }
    tensors |= {"empty": torch.empty(0, 4), "number": torch.tensor(3.5)}
    save_file(tensors, tmp_path / "a.safetensors", metadata={"about": json.dumps([1])})
    with TensorFile(tmp_path / "a.safetensors") as opened:
        assert opened.metadata == {"about": "[1]"} and opened.tensors.keys() == tensors.keys()
        for name, tensor in tensors.items():
            found = opened.read(name)
            assert found.dtype == tensor.dtype and torch.equal(found, tensor)


# ---- limits ---------------------------------------------------------------------------------------------------------


def test_a_file_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert read_plain(tmp_path / "a", 10) == b"x" * 10
    with pytest.raises(ValueError, match="has more than 9 bytes"):
        read_plain(tmp_path / "a", 9)
    with pytest.raises(OSError):
        read_plain(tmp_path / "none")
    assert plain_files.MAX_TEXT_BYTES < 100_000_000


@pytest.mark.parametrize("kind", ["device", "pipe"])
@pytest.mark.parametrize("name", ["model.gguf", "history.csv"])
def test_a_file_without_an_end_is_not_read(tmp_path: Path, name: str, kind: str) -> None:
    """Opening a pipe blocks until something is written to it."""
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    assert not is_gguf(tmp_path / name)
    assert best_row(tmp_path / "history.csv") is None and checkpoint_step(tmp_path) is None


@pytest.mark.nightly
def test_the_sizes_of_every_model_that_transformers_knows_are_accepted() -> None:
    transformers = pytest.importorskip("transformers")
    accepted = 0
    for kind in transformers.CONFIG_MAPPING:
        try:
            fields = transformers.CONFIG_MAPPING[kind]().to_dict()
        except Exception:  # two types have no defaults
            continue
        try:
            check_config(fields)
            accepted += 1
        except CheckpointError as error:
            assert "backbone" in str(error), kind
    assert accepted > 300
