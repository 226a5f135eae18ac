"""Each bug of the forward pass is found by its own check and by no other; a healthy model passes all."""

from __future__ import annotations

import math

import pytest
import torch

import transformer
from tests.transformer import tiny
from transformer.faults.checked_models import CheckedModel, checked_model
from transformer.faults.fault_checks import CHECKS
from transformer.faults.forward_faults import LIVE_FAULTS, inject_fault, other_norm_order, unscaled_scores
from transformer.probes import record

SENTENCE = "We went to the sea."
KINDS = ("translator", "gpt", "bert", "sentiment")  # sinusoidal, learned, rotary, relative; bert is post-norm


def trace_of(checkpoint):
    return transformer.trace(checkpoint, SENTENCE, "Nous sommes à la mer." if checkpoint.config.has_encoder else None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["", *LIVE_FAULTS])
def test_a_check_fires_on_its_own_fault_alone(tiny_checkpoint, kind, fault):
    checkpoint = tiny_checkpoint(kind)
    if fault == "padding" and not checkpoint.config.has_encoder:
        pytest.skip("its causal mask hides padding behind the text")
    checked = checked_model(trace_of(checkpoint), fault)
    findings = {name: check(checked) for name, check in CHECKS.items()}
    assert {name for name, found in findings.items() if found and found.fires} == ({fault} if fault else set())
    asked = {name for name, found in findings.items() if found}
    config = checkpoint.config
    expected = {"scale", "positions", "norm"} | ({"padding"} if config.has_encoder else set())
    assert asked == expected | ({"causal", "target"} if config.has_decoder else set())


@pytest.mark.parametrize("kind", KINDS)
def test_the_checkpoint_is_untouched(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    trace = trace_of(checkpoint)
    weights = {name: tensor.clone() for name, tensor in checkpoint.model.state_dict().items()}
    before, dice = checked_model(trace).run()[0], torch.random.get_rng_state()
    for fault in LIVE_FAULTS:
        faulty, _ = checked_model(trace, fault).run()
        if fault != "padding":  # this text has none
            assert not torch.allclose(faulty, before), fault
    assert torch.equal(checked_model(trace).run()[0], before)
    assert torch.equal(torch.random.get_rng_state(), dice)
    for name, tensor in checkpoint.model.state_dict().items():
        assert torch.equal(tensor, weights[name]), name


@pytest.mark.parametrize("scheme", ["sinusoidal", "relative"])
def test_scores_without_the_root_are_the_plain_products(scheme):
    model = tiny.random_model(positions=scheme)
    with record() as healthy:
        tiny.run(model)
    with record(unscaled_scores(model)) as faulty:
        tiny.run(model)
    place = "encoder.layers.0.self_attention"
    bias = healthy.tensors["encoder.position_bias.values"] if scheme == "relative" else 0.0
    query, key = (healthy.tensors[f"{place}.{part}"] for part in ("query", "key"))
    torch.testing.assert_close(faulty.tensors[f"{place}.scores"], query @ key.transpose(-2, -1) + bias)
    cross = "decoder.layers.0.cross_attention"
    query, key = (faulty.tensors[f"{cross}.{part}"] for part in ("query", "key"))
    torch.testing.assert_close(faulty.tensors[f"{cross}.scores"], query @ key.transpose(-2, -1))


def test_the_factor_that_is_found_is_the_root(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    found = CHECKS["scale"](checked_model(trace_of(checkpoint), "scale"))
    assert found.value == pytest.approx(math.sqrt(checkpoint.config.d_head), rel=1e-4)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", tiny.LAYERS)
def test_the_other_order_of_norms_is_that_order_with_the_same_weights(kind, norm):
    model = tiny.random_model(kind, norm=norm)
    other = other_norm_order(model)
    assert other.config.norm == ("post" if norm == "pre" else "pre")
    mine = dict(model.named_parameters())
    for name, parameter in other.named_parameters():
        if "final_norm" in name:  # only pre-norm training has a final norm
            assert torch.equal(parameter, torch.full_like(parameter, float(name.endswith("weight"))))
        else:
            assert parameter is mine[name], name
    assert not torch.allclose(tiny.run(other), tiny.run(model))
    back = other_norm_order(other)
    if norm == "post":
        torch.testing.assert_close(tiny.run(back), tiny.run(model))


def test_what_is_no_fault_is_refused(tiny_checkpoint):
    with pytest.raises(ValueError, match="fault is 'flu'; choose one of scale"):
        inject_fault(tiny_checkpoint("gpt"), "flu")


def test_a_question_that_cannot_be_asked_is_not_answered():
    one = torch.tensor([[5]])
    model = tiny.random_model("decoder-only")
    checked = CheckedModel(model, (), None, one, one, "pre")
    assert CHECKS["positions"](checked) is None
    assert CHECKS["causal"](checked) is None
    assert CHECKS["target"](checked) is None  # the same token twice: both are right
    assert CHECKS["padding"](checked) is None
    narrow = tiny.random_model("decoder-only", d_model=2)
    assert CHECKS["scale"](CheckedModel(narrow, (), None, one, one, "pre")) is None
    full = tiny.random_model("encoder-only", max_length=2)
    assert CHECKS["padding"](CheckedModel(full, (), torch.tensor([[5, 6]]), None, None, "pre")) is None
