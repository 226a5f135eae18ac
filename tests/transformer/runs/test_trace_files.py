"""A trace read from its file is identical, and anything else is refused with a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from transformer import Checkpoint, Trace, TraceFileError, read_trace, save_trace, trace
from transformer.runs.trace_files import FORMAT, trace_from_bytes, trace_to_bytes

Tiny = Callable[[str], Checkpoint]
ODD = "The “cat” 😀 </s>\nقطة the the\x00 \ud800"


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_what_was_written_is_read_back(kind: str, tiny_checkpoint: Tiny, tmp_path: Path) -> None:
    first = trace(tiny_checkpoint(kind), ODD, source_pads=0 if kind == "gpt" else 2)
    save_trace(first, tmp_path / "trace.safetensors")
    again = read_trace(tmp_path / "trace.safetensors")
    assert again.names() == first.names()
    for name in first.names():
        assert again[name].axes == first[name].axes
        assert again[name].values.dtype == first[name].values.dtype
        np.testing.assert_array_equal(again[name].values, first[name].values)
        assert not again[name].values.flags.writeable
    for field in ("source", "target", "prediction", "text", "forced", "notes"):
        assert getattr(again, field) == getattr(first, field), field
    for stack, attention in first.attention_kinds():
        view = again.attention(stack, 0, attention)
        assert view.query.labels == first.attention(stack, 0, attention).query.labels


def test_reading_needs_no_torch(tiny_checkpoint: Tiny, tmp_path: Path) -> None:
    save_trace(trace(tiny_checkpoint("gpt"), "Hello."), tmp_path / "trace.safetensors")
    code = (
        f"import sys, transformer; found = transformer.read_trace({str(tmp_path / 'trace.safetensors')!r}); "
        "assert found.n_layers('decoder') == 2; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def whole(tiny_checkpoint: Tiny) -> bytes:
    return trace_to_bytes(trace(tiny_checkpoint("gpt"), "Hello."))


@pytest.mark.parametrize("kept", [0, 5, 8, 100, 5000, -1])
def test_a_truncated_file_is_refused(kept: int, whole: bytes) -> None:
    with pytest.raises(TraceFileError, match="not a complete safetensors file"):
        trace_from_bytes(whole[:kept])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match=r"nothing\.safetensors cannot be read"):
        read_trace(tmp_path / "nothing.safetensors")


def test_weights_are_no_trace() -> None:
    with pytest.raises(TraceFileError, match=f"says format None; a trace says '{FORMAT}'"):
        trace_from_bytes(save({"a": np.zeros(3)}))


@pytest.mark.parametrize(
    "described",
    [
        "[]",
        "{",
        "[" * 100_000,
        json.dumps({"axes": {}}),
        json.dumps({"axes": {"a": ["x", "y"]}, "source": None, "target": None, "prediction": None}),
        json.dumps({"axes": {"a": ["x"]}, "source": {"name": "s", "tokens": [{"index": 3}]}}),
        json.dumps({"axes": {"a": ["x"]}, "source": None, "target": None, "prediction": None, "text": ""}),
    ],
)
def test_a_header_that_lies_is_refused(described: str) -> None:
    with pytest.raises(TraceFileError, match="is not a complete trace"):
        trace_from_bytes(save({"a": np.zeros(3)}, metadata={"format": FORMAT, "trace": described}))


@given(st.binary(max_size=300))
def test_any_bytes_are_a_trace_or_a_sentence(raw: bytes) -> None:
    try:
        assert isinstance(trace_from_bytes(raw), Trace)
    except TraceFileError as error:
        assert str(error).startswith("the file ")
