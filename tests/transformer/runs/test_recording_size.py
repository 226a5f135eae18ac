"""The memory of a recorded pass is known before it runs; too large ones are refused with both numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import transformer
from tests.foreign_checkpoints import FOREIGN, foreign_checkpoint
from transformer.config import ModelConfig
from transformer.files.build import build_model
from transformer.probes import record
from transformer.runs import recording_size
from transformer.runs.activation_arrays import RecordedActivations
from transformer.runs.recording_size import check_recording, pass_bytes, recorded_bytes, rows_that_fit

SENTENCE = "The dog sleeps under the table."
# The model of an attack: a file of 472 KB whose maps of a long text take gigabytes.
MANY_HEADS = ModelConfig(
    kind="decoder-only",
    vocabulary_size=300,
    d_model=16,
    n_heads=16,
    d_ff=16,
    n_encoder_layers=0,
    n_decoder_layers=16,
    max_length=4096,
    positions="none",
)


@pytest.fixture
def at_most(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda most: monkeypatch.setattr(recording_size, "MAX_BYTES", most)


def lengths(trace: transformer.Trace) -> dict[str, int]:
    return {name: len(tokens) for name in ("source", "target") if (tokens := getattr(trace, name)) is not None}


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
@pytest.mark.parametrize("words", [1, 5])
def test_the_formula_is_what_is_measured(tiny_checkpoint, kind: str, words: int) -> None:
    checkpoint = tiny_checkpoint(kind)
    trace = transformer.trace(checkpoint, " ".join([SENTENCE] * words))
    assert recorded_bytes(checkpoint.model, **lengths(trace)) == trace.activations.n_bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_also_of_other_families(tmp_path: Path, name: str) -> None:
    checkpoint = transformer.load(foreign_checkpoint(name, tmp_path))
    trace = transformer.trace(checkpoint, SENTENCE)
    measured = trace.activations.n_bytes
    assert measured <= recorded_bytes(checkpoint.model, **lengths(trace)) <= 1.15 * measured  # norms are derived


def test_the_model_of_the_attack_is_counted_right() -> None:
    model = build_model(MANY_HEADS).eval()
    with torch.inference_mode(), record() as recording:
        model(torch.full((1, 200), 7))
    measured = RecordedActivations(model.probes, recording.tensors).n_bytes
    assert recorded_bytes(model, target=200) == measured
    assert recorded_bytes(model, target=3900) > 30e9


def test_what_takes_too_much_is_refused_with_both_numbers(at_most) -> None:
    model = build_model(MANY_HEADS).eval()
    at_most(2_000_000_000)
    check_recording(model, target=900)
    with pytest.raises(transformer.InputError, match="To record 3,900 tokens") as refused:
        check_recording(model, target=3900)
    needed, most = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) MB", str(refused.value)))
    assert needed == round(pass_bytes(model, target=3900) / 1e6)
    assert 0 < most <= 2000


def test_a_small_machine_refuses_by_what_is_free(at_most, monkeypatch: pytest.MonkeyPatch) -> None:
    at_most(2_000_000_000)
    monkeypatch.setattr(recording_size, "free_memory", lambda: 100_000_000)
    with pytest.raises(transformer.InputError, match="at most 50 MB"):
        check_recording(build_model(MANY_HEADS), target=900)


def test_a_trace_is_refused_before_anything_runs(tiny_checkpoint, at_most, monkeypatch) -> None:
    checkpoint = tiny_checkpoint("translator")
    at_most(1)
    monkeypatch.setattr(recording_size, "ALWAYS", 0)
    ran = []
    handle = checkpoint.model.encoder.register_forward_pre_hook(lambda *_: ran.append(1))
    try:
        with pytest.raises(transformer.InputError, match="MB of memory"):
            transformer.trace(checkpoint, SENTENCE, "Le chien dort.")
    finally:
        handle.remove()
    assert not ran


def test_a_sweep_takes_as_many_rows_as_fit(tiny_checkpoint, at_most) -> None:
    model = tiny_checkpoint("gpt").model
    one = pass_bytes(model, target=10)
    at_most(5 * one)
    assert rows_that_fit(model, 64, target=10) == 5
    few = [name for name in model.probes if name.endswith(".weights")]
    assert rows_that_fit(model, 64, target=10, names=few) > 5, "what is not kept needs no room"
    assert rows_that_fit(model, 3, target=10) == 3
    at_most(1)
    assert rows_that_fit(model, 64, target=10) == 1, "a trace of it exists"
