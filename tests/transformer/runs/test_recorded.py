"""A pass recorded layer by layer equals one recorded whole; its memory is known before it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional

import transformer
from tests.transformer.guests.tiny_guests import guest_checkpoint
from transformer.config import ModelConfig
from transformer.errors import InputError
from transformer.files.build import build_model
from transformer.models import Model
from transformer.runs import recording_size
from transformer.runs.lazy_pass import LazyPass
from transformer.runs.recorded import Recorded
from transformer.runs.recording_size import (
    check_recording,
    kept_bytes,
    lazy_pass_bytes,
    pass_bytes,
    probe_bytes,
    rows_that_fit,
)
from transformer.runs.run import Run
from transformer.runs.tracing import trace_of

SENTENCE = "The dog sleeps under the table."
NEXT = transformer.Greedy(1)
TOLERANCE = 2e-5  # of the largest number of an activation: what the rounding of the fused kernels changes


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch):
    """Return ``transformer.trace`` on a machine on which only one layer of a sentence fits into memory."""

    def make(checkpoint: transformer.Checkpoint, sentence: str = SENTENCE, **given: object) -> transformer.Trace:
        with monkeypatch.context() as patch:
            patch.setattr(recording_size, "ALWAYS", 0)
            needed = recording_size.pass_bytes(checkpoint.model, target=len(checkpoint.tokenizer.encode(sentence)))
            patch.setattr(recording_size, "allowed_bytes", lambda: needed - 1)
            return trace_of(Run(checkpoint, sentence, **{"edits": (), **given}))

    return make


def assert_close(whole: transformer.Trace, lazy: transformer.Trace) -> None:
    assert lazy.names() == whole.names()
    assert (lazy.target, lazy.prediction, lazy.text) == (whole.target, whole.prediction, whole.text)
    for name in whole.names():
        expected, found = whole[name], lazy[name]
        assert found.axes == expected.axes
        size = np.abs(expected.values, dtype=np.float64).max()
        np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=TOLERANCE * size, err_msg=name)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return what has run: "pass", the layer that ended a pass, or "alone" with a layer."""
    found: list[str] = []
    run, run_part = LazyPass._run, LazyPass._run_part

    def count(self: LazyPass, within: str | None = None):
        before, values = bool(self._kept), run(self, within)
        found.append("pass" if within is None or before else f"pass to {within}")
        return values

    def count_part(self: LazyPass, part: str):
        if part != "decoder.logits" and self._call_of(part) is not None:
            found.append(f"{part} alone")
        return run_part(self, part)

    monkeypatch.setattr(LazyPass, "_run", count)
    monkeypatch.setattr(LazyPass, "_run_part", count_part)
    return found


@pytest.mark.parametrize("kind", ["gpt", "phi", "olmo3", "gptj", "mixtral", "gpt_oss"])
def test_each_layer_runs_once_more_alone_and_all_is_as_in_a_complete_recording(
    tiny_checkpoint, guest, long, ran, kind: str
) -> None:
    """Biases, windows, parallel layers, experts, sinks: alone it computes what it computes in the model."""
    checkpoint = tiny_checkpoint(kind) if kind == "gpt" else guest(kind)
    for strategy in (transformer.Greedy(4), NEXT):
        ran.clear()
        whole, lazy = transformer.trace(checkpoint, SENTENCE, strategy=strategy), long(checkpoint, strategy=strategy)
        assert_close(whole, lazy)
        assert ran.count("pass") == 1 and lazy.activations.n_bytes > kept_bytes(checkpoint.model, len(lazy.target))
    assert ran == ["pass", *(f"decoder.layers.{layer} alone" for layer in range(checkpoint.config.n_decoder_layers))]


@pytest.mark.parametrize(("kind", "causal"), [("phi", True), ("mistral", False)], ids=["causal", "window"])
def test_kernels_skip_what_causality_alone_masks_in_a_guest(
    tmp_path, long, monkeypatch, kind: str, causal: bool
) -> None:
    checkpoint, seen = transformer.load(guest_checkpoint(kind, tmp_path, max_position_embeddings=256)), []
    text, kernel = " ".join([SENTENCE] * 7), functional.scaled_dot_product_attention
    whole, lazy = transformer.trace(checkpoint, text, strategy=NEXT), long(checkpoint, text, output=False)

    def attend(*inputs: object, **given: object) -> torch.Tensor:
        seen.append(given["is_causal"])
        return kernel(*inputs, **given)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", attend)
    np.testing.assert_allclose(lazy.values("decoder.logits"), whole.values("decoder.logits"), atol=1e-4)
    assert len(whole.target) >= 128 and seen == [causal] * checkpoint.config.n_decoder_layers


def test_a_layer_that_gives_something_else_alone_runs_in_the_whole_pass(tmp_path, long, ran) -> None:
    checkpoint = transformer.load(guest_checkpoint("phi", tmp_path))
    whole, lazy = transformer.trace(checkpoint, SENTENCE, strategy=NEXT), long(checkpoint, strategy=NEXT)
    end = checkpoint.model.probes["decoder.layers.0.residual.out"]
    wrong = torch.zeros(1, len(lazy.target), checkpoint.config.d_model)
    lazy.activations._lazy._calls["decoder.layers.0"] = lambda: end(wrong)
    assert_close(whole, lazy)
    assert ran == ["pass", "decoder.layers.0 alone", *["pass"] * checkpoint.config.n_decoder_layers]


@pytest.mark.parametrize("reads_below", [False, True])
def test_a_pass_of_a_guest_continues_unless_a_layer_reads_what_another_has_computed(tmp_path, long, reads_below):
    checkpoint, kept, runs = transformer.load(guest_checkpoint("phi", tmp_path)), [], [0, 0]
    n_tokens = len(long(checkpoint, strategy=NEXT).target)

    def watch(layer: int, _: object, __: object, output: tuple) -> tuple:
        runs[layer] += output[0].shape[1] == n_tokens
        kept[:] = kept if layer else [output[0]]
        return (output[0] + kept[0][:, : output[0].shape[1]], *output[1:]) if layer and reads_below else output

    for layer in (0, 1):
        part = checkpoint.model.stack_hooks["decoder"].parts[f"layers.{layer}.self_attention"]
        part.register_forward_hook(partial(watch, layer))
    whole, lazy = transformer.trace(checkpoint, SENTENCE, strategy=NEXT), long(checkpoint, output=False)
    runs[:] = 0, 0
    lazy.attention("decoder", 1)
    np.testing.assert_allclose(lazy.values("decoder.logits"), whole.values("decoder.logits"), atol=1e-5)
    assert runs == ([2, 2] if reads_below else [1, 2]), "only the layer whose input is kept runs again"


def test_only_the_layers_that_are_looked_at_are_computed(tiny_checkpoint, long, ran) -> None:
    checkpoint = tiny_checkpoint("gpt")
    trace = long(checkpoint, strategy=NEXT)
    lazy = trace.activations._lazy
    assert ran == ["pass"], "for the next token"
    assert trace.values("decoder.layers.1.residual.in").size and len(ran) == 1
    for layer in (1, 1, 0, 1):
        trace.attention("decoder", layer)
    assert ran[1:] == ["decoder.layers.1 alone", "decoder.layers.0 alone"], "both fit into the budget"
    lazy._budget = 1
    trace.values("decoder.logits")
    assert [*lazy._remembered] == ["decoder.logits"], "the last part is kept, whatever its size"
    kept = sum(tensor.nbytes for tensor in lazy._kept.values())
    assert kept == kept_bytes(checkpoint.model, len(trace.target))
    assert trace.activations.n_bytes == kept + trace.values("decoder.logits").nbytes


@pytest.mark.parametrize("make", [lambda given, path: given("gpt"), lambda given, path: None], ids=["own", "guest"])
def test_without_an_output_no_layer_runs_above_the_first_that_is_read(tiny_checkpoint, tmp_path, long, ran, make):
    """The first view of a map waits for the layers below it; what is read later is the same."""
    checkpoint = make(tiny_checkpoint, tmp_path) or transformer.load(guest_checkpoint("phi", tmp_path))
    expected, trace = long(checkpoint, strategy=NEXT), long(checkpoint, strategy=NEXT, output=False)
    assert (trace.prediction, trace.target, ran) == (None, expected.target, ["pass"])
    weights = trace.attention("decoder", 0).weights
    assert ran == ["pass", "pass to decoder.layers.0"]
    np.testing.assert_array_equal(weights, expected.attention("decoder", 0).weights)
    for name in expected.names():
        np.testing.assert_allclose(trace.values(name), expected.values(name), atol=1e-5, err_msg=name)


@pytest.mark.parametrize("output", [True, False])
def test_a_number_that_is_not_finite_is_found_once_its_layer_has_run(tiny_checkpoint, long, monkeypatch, output):
    checkpoint = tiny_checkpoint("gpt")
    assert long(checkpoint, strategy=NEXT).first_not_finite is None
    attention = checkpoint.model.decoder.layers[1].self_attention
    broken = attention.output_projection.bias.detach().clone().fill_(float("nan"))
    monkeypatch.setattr(attention.output_projection.bias, "data", broken)
    trace = long(checkpoint, strategy=NEXT, output=output)
    if not output:
        trace.attention("decoder", 0)
        trace.check_finite()
    trace.values("decoder.logits")
    with pytest.raises(transformer.NotFiniteError, match=r"decoder\.layers\.1\.self_attention\.output is NaN"):
        trace.check_finite()


def test_an_edit_and_a_text_whose_single_layer_does_not_fit_are_refused(tiny_checkpoint, long, monkeypatch) -> None:
    checkpoint, edit = tiny_checkpoint("gpt"), transformer.ablate_head("decoder", layer=0, head=1)
    with pytest.raises(ValueError, match="1 edits cannot be lazy"):
        Recorded(checkpoint.model, [torch.tensor([[1, 5, 6]])], [edit], lazy=True)
    for strategy in (NEXT, None):
        with pytest.raises(InputError, match="in every layer and head"):
            long(checkpoint, edits=(edit,), strategy=strategy)
    n_tokens = len(checkpoint.tokenizer.encode(SENTENCE)) + len(checkpoint.framing.before)
    needed = lazy_pass_bytes(checkpoint.model, n_tokens)
    monkeypatch.setattr(recording_size, "ALWAYS", 0)
    monkeypatch.setattr(recording_size, "allowed_bytes", lambda: needed)
    assert transformer.trace(checkpoint, SENTENCE, strategy=NEXT).names()
    monkeypatch.setattr(recording_size, "allowed_bytes", lambda: needed - 1)
    with pytest.raises(InputError, match="even one layer of this model at a time"):
        transformer.trace(checkpoint, SENTENCE, strategy=NEXT)


def test_the_rows_of_a_step_take_the_memory_of_its_arrays(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("gpt")
    whole = Recorded(checkpoint.model, [torch.tensor([[1, 5, 6, 7]])])
    step = whole.step(2, 3)
    assert step["decoder.layers.0.self_attention.weights"].shape[1:] == (1, 3)
    assert step.n_bytes == sum(activation.values.nbytes for activation in step.values()) < whole.n_bytes
    assert "decoder.nothing" not in step and len(step) == len(whole)


# ---- memory ----------------------------------------------------------------------------------------------------------

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


def recorded_bytes(model: Model, source: int = 0, target: int = 0) -> int:
    return sum(probe_bytes(model, source, target).values())


def test_the_model_of_the_attack_is_counted_right() -> None:
    model = build_model(MANY_HEADS).eval()
    measured = Recorded(model, [torch.full((1, 200), 7)]).n_bytes
    assert recorded_bytes(model, target=200) == measured
    assert recorded_bytes(model, target=3900) > 30e9


def test_what_takes_too_much_is_refused_with_both_numbers(at_most, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_model(MANY_HEADS).eval()
    at_most(2_000_000_000)
    check_recording(model, target=900)
    with pytest.raises(transformer.InputError, match="To record 3,900 tokens") as refused:
        check_recording(model, target=3900)
    needed, most = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) MB", str(refused.value)))
    assert needed == round(pass_bytes(model, target=3900) / 1e6)
    assert 0 < most <= 2000
    monkeypatch.setattr(recording_size, "free_memory", lambda: 100_000_000)
    with pytest.raises(transformer.InputError, match="at most 50 MB"):
        check_recording(model, target=900)


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
