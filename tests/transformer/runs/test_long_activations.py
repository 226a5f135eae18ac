"""A text that is recorded layer by layer has the numbers of a complete recording."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from transformer.errors import InputError
from transformer.runs import recording_size
from transformer.runs.long_activations import LongActivations, LongGuestActivations
from transformer.runs.recording_size import kept_of_long_text_bytes, long_pass_bytes
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
    assert isinstance(lazy.activations, LongActivations | LongGuestActivations)
    assert lazy.names() == whole.names()
    assert (lazy.target, lazy.prediction, lazy.text) == (whole.target, whole.prediction, whole.text)
    for name in whole.names():
        expected, found = whole[name], lazy[name]
        assert found.axes == expected.axes
        size = np.abs(expected.values, dtype=np.float64).max()
        np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=TOLERANCE * size, err_msg=name)


@pytest.mark.parametrize("strategy", [NEXT, transformer.Greedy(4)], ids=["next token", "continuation"])
def test_everything_is_as_in_a_complete_recording(tiny_checkpoint, long, strategy) -> None:
    checkpoint = tiny_checkpoint("gpt")
    assert_close(
        transformer.trace(checkpoint, SENTENCE, strategy=strategy), long(checkpoint, SENTENCE, strategy=strategy)
    )


@pytest.mark.parametrize("name", ["hf-llama", "hf-gemma2", "hf-neox"])
def test_also_of_other_families(tmp_path, long, name: str) -> None:
    """Shared keys, windows, caps, parallel layers: a layer alone computes what it computes in the model."""
    checkpoint = transformer.load(foreign_checkpoint(name, tmp_path))
    assert_close(transformer.trace(checkpoint, SENTENCE, strategy=NEXT), long(checkpoint, strategy=NEXT))


def test_also_of_a_guest(tmp_path, long) -> None:
    from tests.transformer.guests.tiny_guests import guest_checkpoint

    checkpoint = transformer.load(guest_checkpoint("phi", tmp_path))
    assert_close(transformer.trace(checkpoint, SENTENCE, strategy=NEXT), long(checkpoint, strategy=NEXT))


@pytest.fixture
def layers_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    found: list[str] = []
    run_again = LongActivations._run_again

    def count(self: LongActivations, part: str):
        found.append(part)
        return run_again(self, part)

    monkeypatch.setattr(LongActivations, "_run_again", count)
    return found


def test_only_the_layers_that_are_looked_at_are_computed(tiny_checkpoint, long, layers_run) -> None:
    trace = long(tiny_checkpoint("gpt"), strategy=NEXT)
    kept = trace.activations._kept.n_bytes
    assert kept < 0.15 * sum(trace.values(name).nbytes for name in trace.names())
    trace.activations._remembered.clear()
    layers_run.clear()
    assert trace.values("decoder.layers.1.residual.in").size and not layers_run
    for _ in range(2):
        trace.attention("decoder", 1)
    assert layers_run == ["decoder.layers.1"]
    trace.attention("decoder", 0)
    trace.attention("decoder", 1)
    assert layers_run == ["decoder.layers.1", "decoder.layers.0"], "both fit into the budget"
    trace.activations._budget = 1
    trace.values("decoder.logits")
    assert [*trace.activations._remembered] == ["decoder.logits"], "the last part is kept, whatever its size"
    assert trace.activations.n_bytes >= kept + trace.values("decoder.logits").nbytes


def test_without_an_output_no_layer_runs_above_the_one_that_is_read(tiny_checkpoint, long) -> None:
    """The first view of a map waits for the layers below it; what is read later is the same."""
    checkpoint = tiny_checkpoint("gpt")
    last = checkpoint.config.n_decoder_layers - 1
    expected = long(checkpoint, strategy=NEXT)
    trace = long(checkpoint, strategy=NEXT, output=False)
    streams = trace.activations._streams
    assert (trace.prediction, trace.target, len(streams)) == (None, expected.target, 1)
    np.testing.assert_array_equal(trace.attention("decoder", 0).weights, expected.attention("decoder", 0).weights)
    assert len(streams) == 1, "the first layer reads the embedding"
    np.testing.assert_array_equal(trace.attention("decoder", last).weights, expected.attention("decoder", last).weights)
    assert len(streams) == last + 1
    for name in expected.names():
        np.testing.assert_array_equal(trace.values(name), expected.values(name), err_msg=name)
    assert trace.activations._kept.n_bytes == kept_of_long_text_bytes(checkpoint.model, len(trace.target))


def test_a_layer_that_is_not_finite_is_found_once_it_has_run(tiny_checkpoint, long, monkeypatch) -> None:
    checkpoint = tiny_checkpoint("gpt")
    attention = checkpoint.model.decoder.layers[0].self_attention
    broken = attention.output_projection.bias.detach().clone().fill_(float("nan"))
    monkeypatch.setattr(attention.output_projection.bias, "data", broken)
    trace = long(checkpoint, strategy=NEXT, output=False)
    trace.attention("decoder", 0)
    trace.check_finite()
    trace.attention("decoder", 1)
    with pytest.raises(transformer.NotFiniteError, match=r"decoder\.layers\.1\.residual\.in is NaN"):
        trace.check_finite()


def test_a_number_that_is_not_finite_is_found(tiny_checkpoint, long, monkeypatch) -> None:
    checkpoint = tiny_checkpoint("gpt")
    assert long(checkpoint, strategy=NEXT).first_not_finite is None
    attention = checkpoint.model.decoder.layers[0].self_attention
    broken = attention.output_projection.bias.detach().clone().fill_(float("nan"))
    monkeypatch.setattr(attention.output_projection.bias, "data", broken)
    found = long(checkpoint, strategy=NEXT).first_not_finite
    assert (found.name, found.kind) == ("decoder.layers.1.residual.in", "NaN"), "the first number that is kept"


def test_an_edit_needs_a_complete_recording(tiny_checkpoint, long) -> None:
    edits = (transformer.ablate_head("decoder", layer=0, head=1),)
    for strategy in (NEXT, None):
        with pytest.raises(InputError, match="in every layer and head"):
            long(tiny_checkpoint("gpt"), edits=edits, strategy=strategy)


def test_a_text_whose_single_layer_does_not_fit_is_refused(tiny_checkpoint, monkeypatch) -> None:
    checkpoint = tiny_checkpoint("gpt")
    n_tokens = len(checkpoint.tokenizer.encode(SENTENCE)) + len(checkpoint.framing.before)
    needed = long_pass_bytes(checkpoint.model, n_tokens)
    monkeypatch.setattr(recording_size, "ALWAYS", 0)
    monkeypatch.setattr(recording_size, "allowed_bytes", lambda: needed)
    assert transformer.trace(checkpoint, SENTENCE, strategy=NEXT).names()
    monkeypatch.setattr(recording_size, "allowed_bytes", lambda: needed - 1)
    with pytest.raises(InputError, match="even one layer of this model at a time"):
        transformer.trace(checkpoint, SENTENCE, strategy=NEXT)
