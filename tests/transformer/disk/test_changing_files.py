"""A weights file overwritten or truncated during a read gives a model or an error, never a signal."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.transformer.guests.gguf_files import token_keys, write_gguf
from tests.transformer.guests.hugging_face import build
from tests.transformer.text.foreign_folders import byte_level
from transformer.disk.gguf_file import GgufFile
from transformer.disk.tensor_files import TensorFile
from transformer.errors import CheckpointError
from transformer.system.python_process import start_python

# Truncates the file to a third and restores it, repeatedly, while another thread loads.
DISTURBED = """
import sys, threading, time
from pathlib import Path
import transformer
place, file = Path(sys.argv[1]), Path(sys.argv[2])
content, stop = file.read_bytes(), threading.Event()
def disturb():
    with open(file, "r+b", buffering=0) as opened:
        while not stop.is_set():
            opened.truncate(len(content) // 3)
            time.sleep(0.002)
            opened.seek(0)
            opened.write(content)
            time.sleep(0.002)
transformer.load(place)
thread = threading.Thread(target=disturb)
thread.start()
found = []
for _ in range(40):
    try:
        found.append(transformer.load(place).model.n_parameters)
    except transformer.CheckpointError as error:
        found.append(0)
stop.set()
thread.join()
print(len(found), len({count for count in found if count}), found.count(0))
"""


def gpt2(**more: object) -> tuple:
    backend = byte_level(special=("<|endoftext|>",))
    model = build("gpt2", vocab_size=backend.get_vocab_size(), bos_token_id=0, eos_token_id=0, **more)
    return backend, model


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["safetensors", "gguf"])
def test_a_file_that_is_cut_and_rewritten_while_it_is_loaded(kind: str, tmp_path: Path) -> None:
    backend, model = gpt2(n_embd=240)
    if kind == "gguf":
        place = file = write_gguf(tmp_path / "model.gguf", model, tokens=token_keys(backend, "gpt2", pre="gpt-2"))
    else:
        place, file = tmp_path, tmp_path / "model.safetensors"
        backend.save(str(tmp_path / "tokenizer.json"))
        model.save_pretrained(tmp_path)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = start_python("-c", DISTURBED, str(place), str(file), **streams)
    printed, problems = process.communicate(timeout=300)
    assert process.returncode == 0, (process.returncode, problems[-1000:])
    n_loads, n_sizes, n_sentences = map(int, printed.split())
    assert n_loads == 40 and n_sizes <= 1 and n_sentences > 0


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
    _, model = gpt2()
    file = write_gguf(tmp_path / "model.gguf", model)
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


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', "cannot have 4 bytes"),
        ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', "it has 8 bytes of numbers, and its header says 4"),
        ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', "does not begin where the tensor before it ends"),
        ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
         "does not begin where"),
        ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
         "names something twice"),
        ('{"a":{"dtype":"F32","shape":[-2],"data_offsets":[8,0]}}', "unexpected tensor"),
        ('{"a":{"dtype":"F32","shape":[true,2],"data_offsets":[0,8]}}', "unexpected tensor"),
        ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,16]}}', "unexpected tensor"),
        ('{"a":{"dtype":"X9","shape":[2],"data_offsets":[0,8]}}', "unexpected tensor"),
        ('{"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}}', "unexpected tensor"),
        ('{"a":[1,2]}', "unexpected tensor"),
        ('{"__metadata__":{"a":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "metadata are not texts"),
        ('{"a":' + "[" * 100_000, "recursion"),
        ('[1, 2]', "not a JSON object"),
        ('{"a"', "delimiter"),
    ],
)  # fmt: skip
def test_a_header_that_lies(header: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header.encode() + b"\0" * 8)
    with pytest.raises(CheckpointError, match=problem), TensorFile(file):
        pass


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
