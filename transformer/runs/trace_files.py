"""A trace as one file: arrays as safetensors, everything else as JSON in its header.

Reading needs no torch and executes nothing from the file; a header that claims more than the file holds is refused.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from transformer.disk.plain_files import read_plain
from transformer.disk.whole_files import write_bytes
from transformer.errors import MessageError, TraceFileError, text_of
from transformer.runs.activation import Activation
from transformer.runs.traces import Trace
from transformer.text.tokens import Token, TokenSequence

FORMAT = "glassformer-trace-1"
MAX_BYTES = 2_000_000_000  # 256 tokens of the largest model included take 0.06 GB
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_SEQUENCES = ("source", "target", "prediction")


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace to a file; ``read_trace`` restores every number exactly."""
    write_bytes(Path(path), trace_to_bytes(trace))


def read_trace(path: str | Path) -> Trace:
    """Read a file that ``save_trace`` or the app has written.

    Raises:
        TraceFileError: If the file is missing, broken or not a trace.
    """
    try:
        raw = read_plain(Path(path), MAX_BYTES)
    except (OSError, MessageError) as error:
        raise TraceFileError(text_of(error)) from error
    return trace_from_bytes(raw, name=str(path))


def trace_to_bytes(trace: Trace) -> bytes:
    """Return the bytes of a file with the header ``{"format": …, "trace": JSON of axes, tokens, …}``."""
    described = {
        "axes": {name: activation.axes for name, activation in trace.activations.items()},
        **{name: _describe_tokens(getattr(trace, name)) for name in _SEQUENCES},
        "text": trace.text,
        "forced": trace.forced,
        "notes": trace.notes,
    }
    arrays = {name: np.ascontiguousarray(activation.values) for name, activation in trace.activations.items()}
    return save(arrays, metadata={"format": FORMAT, "trace": json.dumps(described)})


def trace_from_bytes(raw: bytes, *, name: str = "the file") -> Trace:
    """Return the trace in ``raw``; errors call it ``name``.

    Raises:
        TraceFileError: If it is broken or not a trace.
    """
    try:
        arrays, metadata = load(raw), header(raw).get("__metadata__") or {}
    except (SafetensorError, ValueError) as error:
        raise TraceFileError(f"{name} is not a complete safetensors file: {text_of(error)}") from error
    if metadata.get("format") != FORMAT:
        raise TraceFileError(f"{name} says format {metadata.get('format')!r}; a trace says {FORMAT!r}")
    try:
        described = json.loads(metadata["trace"])
        axes = described["axes"]
        if axes.keys() != arrays.keys():
            raise ValueError("its header names other arrays than it holds")
        for values in arrays.values():
            values.setflags(write=False)  # read-only, as in a new trace
        activations = {key: Activation(key, tuple(axes[key]), arrays[key]) for key in axes}  # in their original order
        sequences = {key: _sequence(described[key]) for key in _SEQUENCES}
        return Trace(
            activations=activations,
            source=sequences["source"],
            target=sequences["target"],
            prediction=sequences["prediction"],
            text=str(described["text"]),
            forced=bool(described["forced"]),
            notes=tuple(str(note) for note in described["notes"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TraceFileError(f"{name} is not a complete trace: {text_of(error)}") from error


def header(raw: bytes) -> Mapping[str, Any]:
    """Return the JSON header of a safetensors file; its length precedes it, in eight bytes, little-endian."""
    length = int.from_bytes(raw[:8], "little")
    if length > len(raw) - 8:
        raise ValueError(f"its header claims {length} bytes, but only {max(0, len(raw) - 8)} follow")
    found = json.loads(raw[8 : 8 + length])
    if not isinstance(found, dict):
        raise ValueError("its header is not a JSON object")
    return found


def _describe_tokens(tokens: TokenSequence | None) -> dict[str, Any] | None:
    return None if tokens is None else {"name": tokens.name, "tokens": [asdict(token) for token in tokens]}


def _sequence(described: dict[str, Any] | None) -> TokenSequence | None:
    if described is None:
        return None
    tokens = (
        Token(**{**token, "pixels": tuple(map(_pixel, token.get("pixels", ())))}) for token in described["tokens"]
    )
    return TokenSequence(tuple(tokens), described["name"])


def _pixel(value: Any) -> float | str:
    """Return the ink of a pixel, or its colour."""
    return value if isinstance(value, str) and _COLOUR.fullmatch(value) else float(value)
