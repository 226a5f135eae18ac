"""Attributions compared with known results: linear functions, torch's gradients, recomputed passes."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from transformer.attribution import input_attribution
from transformer.attribution.input_attribution import BASELINES, gradient_times_input, integrated_gradients
from transformer.attribution.leave_one_out import remove_each
from transformer.predictions import answer_probabilities
from transformer.predictions.quantity import QUANTITIES, quantity_of
from transformer.runs.edits import Edit
from transformer.text.tokens import TokenSequence

ROOT = Path(__file__).resolve().parents[3]
SENTENCE = "The old man told us a story."
ROWS = {"translator": 3, "gpt": 4, "bert": 2, "sentiment": 0}
KINDS = tuple(ROWS)


def asked(checkpoint, kind, *, of="log_probability", **more):
    trace = transformer.trace(checkpoint, SENTENCE, **more)
    return trace, quantity_of(trace, row=ROWS[kind], of=of)


def recorded(trace, quantity) -> float:
    """Return F from the logits of the trace."""
    name = "classifier.logits" if quantity.of_class else f"{quantity.place[0]}.logits"
    logits = torch.tensor(np.atleast_2d(trace.values(name))[quantity.row])
    return float(logits[quantity.id]) if quantity.of == "logit" else among_writable(trace.checkpoint, logits, quantity)


def among_writable(checkpoint, logits, quantity) -> float:
    """Return log p, or p, of the output; a generative model never writes <pad> and <s>."""
    logits = logits.double()
    if checkpoint.config.has_decoder:
        logits[list(checkpoint.framing.never)] = -torch.inf
    said = float(logits.log_softmax(-1)[quantity.id])
    return said if quantity.of == "log_probability" else np.exp(said)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", QUANTITIES)
def test_the_number_is_the_one_in_the_trace(tiny_checkpoint, kind, of):
    checkpoint = tiny_checkpoint(kind)
    trace, quantity = asked(checkpoint, kind, of=of)
    found = gradient_times_input(checkpoint, quantity), integrated_gradients(checkpoint, quantity, n_steps=2)
    for value in (*(part.value for part in found), remove_each(checkpoint, quantity).value):
        assert value == pytest.approx(recorded(trace, quantity), abs=1e-4)
    for part in found:
        sizes = {stack: len(tokens) for stack, tokens in quantity.read.items()}
        values = {"encoder": part.source, "decoder": part.target}
        assert {stack: len(found) for stack, found in values.items() if found is not None} == sizes


@pytest.mark.parametrize("kind", ["translator", "gpt"])
def test_a_probability_is_the_one_that_decoding_shows(tiny_checkpoint, kind):
    """A token that is never generated has no share, unless F is about it."""
    checkpoint = tiny_checkpoint(kind)
    step, trace = transformer.decode(checkpoint, SENTENCE).steps[0], transformer.trace(checkpoint, SENTENCE)
    row = answer_probabilities.prediction_rows(trace).rows[0]
    for candidate in step.candidates[:3]:
        quantity = quantity_of(trace, row=row, id=candidate.id, of="probability")
        value = remove_each(checkpoint, quantity).value
        assert value == pytest.approx(candidate.probability, rel=1e-4)
    never = quantity_of(trace, row=row, id=checkpoint.framing.never[0])
    assert np.isfinite(gradient_times_input(checkpoint, never).value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("baseline", ["pad", "mean"])
def test_integrated_gradients_sum_to_the_difference(tiny_checkpoint, kind, baseline):
    """Accurate to a hundredth of the change, on random weights, with 128 points."""
    checkpoint = tiny_checkpoint(kind)
    _, quantity = asked(checkpoint, kind)
    found = integrated_gradients(checkpoint, quantity, baseline=baseline, n_steps=128)
    moved = sum(np.abs(part).sum() for part in (found.source, found.target) if part is not None)
    assert abs(found.error) <= 0.01 * moved
    assert abs(found.difference) > 1e-3  # otherwise there would be nothing to sum to
    # The start of the path is the model's output if every token has the baseline's row.
    edits = [
        Edit(f"{stack}.embedding.token", lambda x, stack=stack: baseline_of(checkpoint, stack, baseline).expand_as(x))
        for stack in quantity.read
    ]
    trace = transformer.trace(checkpoint, SENTENCE)
    inputs = [torch.tensor([tokens.ids]) for tokens in (trace.source, trace.target) if tokens is not None]
    with torch.inference_mode(), transformer.probes.record(edits):
        logits = checkpoint.model(*inputs)[0]
    row = logits if quantity.of_class else logits[quantity.row]
    assert found.baseline_value == pytest.approx(among_writable(checkpoint, row, quantity), abs=1e-4)


def baseline_of(checkpoint, stack, name):
    table = getattr(checkpoint.model, stack).embedding.table.weight
    return (table[0] if name == "pad" else table.mean(dim=0)) * checkpoint.config.d_model**0.5


def test_more_points_make_the_error_smaller(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    _, quantity = asked(checkpoint, "bert")
    errors = [abs(integrated_gradients(checkpoint, quantity, n_steps=steps).error) for steps in (1, 64)]
    assert errors[1] < 0.1 * errors[0]


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_linear_function_is_attributed_exactly(tiny_checkpoint, monkeypatch, baseline):
    """For F(x) = Σ w·x, every token's share is w_i·(x_i − x′_i), for any number of points."""
    checkpoint = tiny_checkpoint("translator")
    _, quantity = asked(checkpoint, "translator")
    weights = {s: torch.randn(len(t), 32, generator=torch.Generator().manual_seed(3)) for s, t in quantity.read.items()}

    def linear(_checkpoint, _quantity):
        return lambda *inputs: sum((w * x).sum((1, 2)) for w, x in zip(weights.values(), inputs, strict=True))

    monkeypatch.setattr(input_attribution, "_forward", linear)
    for steps in (1, 5):
        found = integrated_gradients(checkpoint, quantity, baseline=baseline, n_steps=steps)
        assert found.error == pytest.approx(0, abs=1e-4)
    simple = gradient_times_input(checkpoint, quantity)
    for stack, part, plain in (("encoder", found.source, simple.source), ("decoder", found.target, simple.target)):
        embedding = getattr(checkpoint.model, stack).embedding
        inputs = embedding.table(torch.tensor(quantity.read[stack].ids)).detach() * embedding.scale
        start = torch.zeros(32) if baseline == "zero" else baseline_of(checkpoint, stack, baseline).detach()
        assert part == pytest.approx((weights[stack] * (inputs - start)).sum(1).numpy(), abs=1e-4)
        assert plain == pytest.approx((weights[stack] * inputs).sum(1).numpy(), abs=1e-4)


def test_gradient_times_input_is_the_slope_along_each_token(tiny_checkpoint):
    """Scale one token's embedding slightly and observe log p: d F / d factor = x_i · ∂F/∂x_i."""
    checkpoint = tiny_checkpoint("gpt")
    trace, quantity = asked(checkpoint, "gpt")
    found = gradient_times_input(checkpoint, quantity)
    ids, hair = torch.tensor([trace.target.ids]), 0.01
    for position in (0, 2, 4):
        values = []
        for factor in (1 - hair, 1 + hair):
            stretch = torch.ones(ids.shape[1], 1)
            stretch[position] = factor
            edit = Edit("decoder.embedding.token", lambda x, stretch=stretch: x * stretch)
            with torch.inference_mode(), transformer.probes.record([edit]):
                values.append(among_writable(checkpoint, checkpoint.model(ids)[0, quantity.row], quantity))
        assert found.target[position] == pytest.approx((values[1] - values[0]) / (2 * hair), rel=0.02, abs=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_shared_model_keeps_no_gradient(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    before = {name: value.clone() for name, value in checkpoint.model.state_dict().items()}
    _, quantity = asked(checkpoint, kind)
    gradient_times_input(checkpoint, quantity)
    integrated_gradients(checkpoint, quantity, n_steps=3)
    assert all(parameter.grad is None for parameter in checkpoint.model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in checkpoint.model.state_dict().items())
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def test_inference_mode_around_it_does_no_harm(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    _, quantity = asked(checkpoint, "gpt")
    alone = integrated_gradients(checkpoint, quantity, n_steps=3)
    with torch.inference_mode():
        inside = integrated_gradients(checkpoint, quantity, n_steps=3)
        assert torch.is_inference_mode_enabled()
    assert np.array_equal(alone.target, inside.target)


@pytest.mark.slow
def test_many_threads_get_what_one_would(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    quantities = [asked(checkpoint, "translator", of=of)[1] for of in QUANTITIES] * 4

    def work(quantity):
        found = integrated_gradients(checkpoint, quantity, n_steps=5)
        transformer.trace(checkpoint, SENTENCE)  # another recording in between
        return np.concatenate([found.source, found.target, remove_each(checkpoint, quantity).source])

    alone = [work(quantity) for quantity in quantities[:3]] * 4
    with ThreadPoolExecutor(6) as pool:
        for expected, got in zip(alone, pool.map(work, quantities), strict=True):
            assert got == pytest.approx(expected, abs=1e-6)


def test_batches_of_points_change_nothing(tiny_checkpoint, monkeypatch):
    checkpoint = tiny_checkpoint("sentiment")
    _, quantity = asked(checkpoint, "sentiment")
    whole = integrated_gradients(checkpoint, quantity, n_steps=10)
    monkeypatch.setattr(input_attribution, "ROWS", 3)
    assert integrated_gradients(checkpoint, quantity, n_steps=10).source == pytest.approx(whole.source, abs=1e-6)


def test_padding_has_no_share(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    _, quantity = asked(checkpoint, "translator", source_pads=3)
    assert np.abs(integrated_gradients(checkpoint, quantity, n_steps=4).source[-3:]).max() == 0
    assert np.abs(gradient_times_input(checkpoint, quantity).source[-3:]).max() == 0
    assert remove_each(checkpoint, quantity).source[-3:] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_out_is_really_leaving_out(tiny_checkpoint, kind):
    """Token by token, compared with separate passes over the shortened ids."""
    checkpoint = tiny_checkpoint(kind)
    trace, quantity = asked(checkpoint, kind)
    found = remove_each(checkpoint, quantity)
    whole = {stack: list(tokens.ids) for stack, tokens in quantity.read.items()}
    for stack, values in (("encoder", found.source), ("decoder", found.target)):
        for position in range(0 if values is None else len(values)):
            if kind == "bert" and position == quantity.row:
                assert np.isnan(values[position])
                continue
            texts = {**whole, stack: [*whole[stack][:position], *whole[stack][position + 1 :]]}
            with torch.inference_mode():
                logits = checkpoint.model(*(torch.tensor([ids]) for ids in texts.values()))[0]
            moved = quantity.place is not None and quantity.place[0] == stack and position <= quantity.row
            row = logits if kind == "sentiment" else logits[quantity.row - moved]
            expected = recorded(trace, quantity) - among_writable(checkpoint, row, quantity)
            assert values[position] == pytest.approx(expected, abs=1e-4)


def test_a_lone_token_cannot_be_left_out(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, "x")
    found = remove_each(checkpoint, quantity_of(trace, row=0))
    assert np.isnan(found.target).all() and len(found.target) == 1 and np.isfinite(found.source).all()


def test_another_word_can_be_asked_for(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    trace = transformer.trace(checkpoint, SENTENCE)
    quantity = quantity_of(trace, row=2, id=300, of="logit")
    assert gradient_times_input(checkpoint, quantity).value == pytest.approx(
        float(trace.values("decoder.logits")[2, 300]), abs=1e-4
    )
    assert isinstance(quantity.target, TokenSequence) and len(quantity.target) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row": 99}, "no row 99"),
        ({"of": "loss"}, "of is 'loss'; choose one of log_probability"),
        ({"id": 400_000}, "no token 400000"),
    ],
)
def test_what_is_not_there_is_refused(tiny_checkpoint, change, message):
    checkpoint = tiny_checkpoint("gpt")
    trace = transformer.trace(checkpoint, SENTENCE)
    with pytest.raises(ValueError, match=message):
        quantity_of(trace, **change)


def test_a_strange_path_is_refused(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    _, quantity = asked(checkpoint, "gpt")
    with pytest.raises(ValueError, match="baseline is 'noise'; choose one of zero, pad, mean"):
        integrated_gradients(checkpoint, quantity, baseline="noise")
    with pytest.raises(ValueError, match="n_steps is 0"):
        integrated_gradients(checkpoint, quantity, n_steps=0)


@pytest.mark.slow
def test_captum_is_loaded_only_when_it_is_needed():
    code = (
        "import sys, transformer.attribution.input_attribution, transformer.attribution.attention_trust\n"
        "assert 'torch' in sys.modules and not {'captum', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
