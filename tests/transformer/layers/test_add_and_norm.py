"""One vector's additions and norms: the identities hold, in the order of the model, for every kind and family."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.foreign_checkpoints import FOREIGN
from transformer import Trace
from transformer.layers.add_and_norm import add_and_norm
from transformer.layers.layer_norm_steps import norm_names, norm_parameters

SENTENCE = "The old man told us a story."
TINY = ("translator", "gpt", "bert", "sentiment")


def check(trace: Trace) -> None:
    order = trace.checkpoint.config.norm
    for stack in trace.stacks:
        for layer in range(trace.n_layers(stack)):
            for name in norm_names(trace, stack, layer):
                halves = add_and_norm(trace, stack, layer, name, 2)
                assert any(half.norm == name for half in halves)
                inside = halves[0].sublayer != ""
                assert inside == (name.startswith(f"{stack}.layers."))
                kinds = [half.kind for half in halves]
                if inside:
                    assert kinds == ["add", "norm"] if order == "post" else kinds[0] == "norm" and kinds[-1] == "add"
                for half in halves:
                    parts = half.vectors
                    if half.kind == "add":
                        first, update, total = parts.values()
                        np.testing.assert_allclose(first + update, total, atol=1e-4)
                    else:
                        gain, bias, _ = norm_parameters(trace.checkpoint, half.norm)
                        shift = 0 if bias is None else bias
                        np.testing.assert_allclose(parts["normalized"] * gain + shift, parts["scaled"], atol=1e-4)
                if inside and order == "post":
                    into = trace.values(f"{halves[1].norm}.input")[2]
                    np.testing.assert_array_equal(halves[0].vectors["sum"], into)
                elif inside and "x" in halves[-1].vectors:
                    np.testing.assert_array_equal(halves[-1].vectors["x"], halves[0].vectors["x"])


@pytest.mark.parametrize("kind", TINY)
def test_of_our_own(tiny_checkpoint: Callable, kind: str) -> None:
    check(transformer.trace(tiny_checkpoint(kind), SENTENCE))


@pytest.mark.parametrize("name", FOREIGN)
def test_of_other_families(family: Callable, name: str) -> None:
    trace = transformer.trace(family(name), SENTENCE)
    check(trace)
    first, *_, last = add_and_norm(trace, trace.stacks[0], 0, f"{trace.stacks[0]}.layers.0.feed_forward_norm", 2)
    assert ("x_and_attention" in (first.vectors | last.vectors)) == (name == "hf-neox")


def test_what_gemma_writes_is_normalised_before_it_is_added(family: Callable) -> None:
    trace = transformer.trace(family("hf-gemma2"), SENTENCE)
    before, behind, add = add_and_norm(trace, "decoder", 0, "decoder.layers.0.self_attention_norm", 2)
    assert before.norm != behind.norm and "written" in behind.vectors
    np.testing.assert_array_equal(behind.vectors["scaled"], add.vectors["update"])
    assert add_and_norm(trace, "decoder", 0, behind.norm, 2)[1].norm == behind.norm
