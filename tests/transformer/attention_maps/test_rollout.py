"""Rollout: cases computed by hand, and invariants for every model."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.attention_maps.rollout import attention_rollout
from transformer.runs.activation import Activation
from transformer.runs.traces import Trace
from transformer.text.tokens import Token, TokenSequence

SENTENCE = "The old man told us a story."


def sequence(length: int, name: str) -> TokenSequence:
    return TokenSequence(tuple(Token(i, 10 + i, f" {name}{i}", f"·{name}{i}") for i in range(length)), name)


def trace_of(*, encoder=(), decoder=(), cross=(), source: int = 0, target: int = 0) -> Trace:
    """Return a trace with only the given weights, [head, query, key] per layer; nonzero cells are allowed."""
    activations = {}
    for stack, kind, layers in (
        ("encoder", "self", encoder),
        ("decoder", "self", decoder),
        ("decoder", "cross", cross),
    ):
        for layer, weights in enumerate(layers):
            weights = np.asarray(weights, dtype=np.float32)
            name = f"{stack}.layers.{layer}.{kind}_attention"
            for part, values in (("weights", weights), ("scores", np.zeros_like(weights))):
                activations[f"{name}.{part}"] = Activation(f"{name}.{part}", ("head", "query", "key"), values)
            allowed = (weights > 0).any(axis=0)
            activations[f"{name}.allowed"] = Activation(f"{name}.allowed", ("query", "key"), allowed)
    return Trace(
        activations=activations,
        source=sequence(source, "s") if source else None,
        target=sequence(target, "t") if target else None,
        prediction=None,
        text="",
    )


def test_two_layers_worked_out_by_hand():
    first = [[[1, 0], [0.5, 0.5]], [[1, 0], [0.1, 0.9]]]  # two heads, whose mean is [[1, 0], [0.3, 0.7]]
    second = [[[1, 0], [0.8, 0.2]]]
    found = attention_rollout(trace_of(decoder=[first, second], target=2), "decoder")
    # Ã_1 = [[1, 0], [0.15, 0.85]], Ã_2 = [[1, 0], [0.4, 0.6]]; row 1: 0.4·[1, 0] + 0.6·[0.15, 0.85] = [0.49, 0.51]
    assert found.target == pytest.approx(np.array([[1, 0], [0.49, 0.51]]), abs=1e-6)
    half_way = attention_rollout(trace_of(decoder=[first, second], target=2), "decoder", layer=0)
    assert half_way.target == pytest.approx(np.array([[1, 0], [0.15, 0.85]]), abs=1e-6)


def test_source_and_target_worked_out_by_hand():
    encoder = [[[0, 1], [1, 0]]]  # each token attends to the other: R = [[½, ½], [½, ½]]
    cross = [[[0.2, 0.8]]]
    found = attention_rollout(
        trace_of(encoder=[encoder], decoder=[[[[1.0]]]], cross=[cross], source=2, target=1), "decoder"
    )
    # One layer: the token keeps ½ of itself; the other ½ comes from the source: [0.2, 0.8] R = [½, ½].
    assert found.target == pytest.approx(np.array([[0.5]]))
    assert found.source == pytest.approx(np.array([[0.25, 0.25]]))
    assert found.view("cross").weights[0] == pytest.approx(np.array([[0.5, 0.5]]))
    assert found.view("self").weights[0] == pytest.approx(np.array([[1.0]]))


def test_attention_to_oneself_gives_the_identity():
    identity = [np.eye(4)]
    found = attention_rollout(trace_of(encoder=[identity, identity, identity], source=4), "encoder")
    assert np.array_equal(found.source, np.eye(4))


def test_a_row_that_may_look_at_nothing_keeps_itself():
    found = attention_rollout(trace_of(encoder=[[[[0, 0], [0.5, 0.5]]]], source=2), "encoder")
    assert found.source == pytest.approx(np.array([[1, 0], [0.25, 0.75]]))


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_rows_sum_to_one_and_masks_hold(tiny_checkpoint, kind):
    pads = 0 if kind == "gpt" else 2
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE, source_pads=pads)
    for stack, attention in trace.attention_kinds():
        found = attention_rollout(trace, stack)
        whole = sum(part.sum(axis=-1) for part in (found.source, found.target) if part is not None)
        assert whole == pytest.approx(np.ones(len(trace.tokens(stack))))
        view = found.view(attention)
        assert view.weights.shape == (1, len(view.query), len(view.key))
        assert view.weights.sum(axis=-1) == pytest.approx(1, abs=1e-6)
        assert (view.weights[0][~view.allowed] == 0).all() and (view.weights >= 0).all()
        if stack == "decoder" and attention == "self":
            assert np.array_equal(view.allowed, np.tril(np.ones_like(view.allowed)))
        elif pads:  # padding contributes only to the rows of padding
            assert not view.allowed[: len(view.query) - (0 if stack == "decoder" else pads), -pads:].any()
        assert view.query is trace.tokens(stack)


def test_it_is_not_the_last_layers_attention(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    last = trace.attention("decoder", 1).weights.mean(axis=0)
    assert np.abs(attention_rollout(trace, "decoder").view().weights[0] - last).max() > 0.05


def test_what_is_not_there_is_refused(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    with pytest.raises(ValueError, match="no layer 7; the decoder has layers 0 to 1"):
        attention_rollout(trace, "decoder", layer=7)
    with pytest.raises(ValueError, match="residual is 2"):
        attention_rollout(trace, "decoder", residual=2)
    with pytest.raises(ValueError, match="no stack 'encoder'"):
        attention_rollout(trace, "encoder")
    with pytest.raises(ValueError, match="no map of kind 'cross'"):
        attention_rollout(trace, "decoder").view("cross")
