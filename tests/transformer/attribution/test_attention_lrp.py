"""AttnLRP equals its rules written with relevances instead of gradients, and conserves relevance."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from tests.foreign_checkpoints import FOREIGN
from transformer.attribution.attention_lrp import _copy_with_rules, attention_lrp
from transformer.predictions.quantity import QUANTITIES, quantity_of

SENTENCE = "The old man told us a story."


def in_double(checkpoint: transformer.Checkpoint) -> transformer.Checkpoint:
    return replace(checkpoint, model=copy.deepcopy(checkpoint.model).double())


@pytest.mark.parametrize("of", QUANTITIES)
@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_relevance_is_conserved(tiny_checkpoint: Callable, kind: str, of: str) -> None:
    checkpoint = in_double(tiny_checkpoint(kind))
    trace = transformer.trace(checkpoint, SENTENCE)
    found = attention_lrp(checkpoint, quantity_of(trace, row=0 if kind == "sentiment" else 3, of=of))
    assert abs(found.error) < 1e-9 * (1 + abs(found.out) + sum(map(abs, found.absorbed.values())))
    assert found.total and (of != "logit" or found.out == pytest.approx(_logit(trace, found.quantity)))


def _logit(trace: transformer.Trace, quantity) -> float:
    name = "classifier.logits" if quantity.of_class else "decoder.logits" if trace.target else "encoder.logits"
    return float(np.atleast_2d(trace.values(name))[quantity.row, quantity.id])


@pytest.mark.parametrize("name", FOREIGN)
def test_it_is_conserved_in_other_families(family: Callable, name: str) -> None:
    checkpoint = family(name)
    trace = transformer.trace(checkpoint, SENTENCE)
    checkpoint = in_double(checkpoint)
    found = attention_lrp(checkpoint, quantity_of(trace, row=0, of="logit"))
    assert abs(found.error) < 1e-6 * (1 + abs(found.out) + sum(map(abs, found.absorbed.values())))


def test_the_shared_model_keeps_its_numbers_and_no_gradient(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    trace = transformer.trace(checkpoint, SENTENCE)
    wanted = [parameter.requires_grad for parameter in checkpoint.model.parameters()]
    first = attention_lrp(checkpoint, quantity_of(trace, row=3))
    assert [parameter.requires_grad for parameter in checkpoint.model.parameters()] == wanted
    assert all(parameter.grad is None for parameter in checkpoint.model.parameters())
    again = transformer.trace(checkpoint, SENTENCE)
    np.testing.assert_array_equal(again.values("decoder.logits"), trace.values("decoder.logits"))
    np.testing.assert_array_equal(attention_lrp(checkpoint, quantity_of(trace, row=3)).target, first.target)


def test_no_weight_is_copied(tiny_checkpoint: Callable) -> None:
    model = tiny_checkpoint("gpt").model
    copied = _copy_with_rules(model)
    places = ([tensor.data_ptr() for tensor in (*one.parameters(), *one.buffers())] for one in (model, copied))
    assert next(places) == next(places)
    assert copied.decoder.layers[0] is not model.decoder.layers[0]


def test_it_is_what_the_rules_say_written_out(tiny_checkpoint: Callable) -> None:
    """A pre-norm decoder with GELU: relevances from the logit down to the tokens, share by share."""
    checkpoint = in_double(tiny_checkpoint("gpt"))
    trace = transformer.trace(checkpoint, SENTENCE)
    row = 4
    quantity = quantity_of(trace, row=row, of="logit")
    found = attention_lrp(checkpoint, quantity)
    ids = torch.tensor([trace.target.ids[: row + 1]])
    with torch.inference_mode(), transformer.probes.record() as recording:
        checkpoint.model(ids)
    at = {name: tensor[0].detach().numpy() for name, tensor in recording.tensors.items()}
    weights = {name: value.detach().numpy() for name, value in checkpoint.model.named_parameters()}

    def linear(relevance: np.ndarray, x: np.ndarray, matrix: np.ndarray, z: np.ndarray) -> np.ndarray:
        """R_i = Σ_j x_i w_ji / z_j R_j, row by row; the bias in z keeps its share."""
        shares = np.zeros_like(x)
        for position in range(len(x)):
            for j in range(len(z[position])):
                shares[position] += x[position] * matrix[j] / z[position, j] * relevance[position, j]
        return shares

    def norm(relevance: np.ndarray, name: str) -> np.ndarray:
        x, normalized = at[f"{name}.input"], at[f"{name}.normalized"]
        relevance = normalized * weights[f"{name}.weight"] / at[f"{name}.output"] * relevance
        width = x.shape[1]
        for_position = []
        for position in range(len(x)):
            matrix = (np.eye(width) - 1 / width) / at[f"{name}.std"][position]
            for_position.append(linear(relevance[[position]], x[[position]], matrix, normalized[[position]])[0])
        return np.array(for_position)

    def attention(relevance: np.ndarray, name: str, x: np.ndarray) -> np.ndarray:
        context, alpha, scores = at[f"{name}.context"], at[f"{name}.weights"], at[f"{name}.scores"]
        query, key, value = (at[f"{name}.{part}"] for part in ("query", "key", "value"))
        n_heads, n, d_head = query.shape
        merged = context.transpose(1, 0, 2).reshape(n, -1)
        output = linear(relevance, merged, weights[f"{name}.output_projection.weight"], at[f"{name}.output"])
        output = output.reshape(n, n_heads, d_head).transpose(1, 0, 2)
        to = {part: np.zeros_like(query) for part in ("query", "key", "value")}
        for h in range(n_heads):
            for i in range(n):
                of_weights = np.zeros(n)
                for j in range(i + 1):
                    share = alpha[h, i, j] * value[h, j] / context[h, i] * output[h, i]
                    of_weights[j] += share.sum() / 2
                    to["value"][h, j] += share / 2
                of_scores = scores[h, i] * (of_weights - alpha[h, i] * of_weights.sum())
                for j in range(i + 1):
                    share = query[h, i] * key[h, j] / np.sqrt(d_head) / scores[h, i, j] * of_scores[j]
                    to["query"][h, i] += share / 2
                    to["key"][h, j] += share / 2
        total = np.zeros_like(x)
        for part, share in to.items():
            z = at[f"{name}.{part}"].transpose(1, 0, 2).reshape(n, -1)
            share = share.transpose(1, 0, 2).reshape(n, -1)
            total += linear(share, x, weights[f"{name}.{part}_projection.weight"], z)
        return total

    hidden = at["decoder.final_norm.output"]
    relevance = np.zeros_like(hidden)
    relevance[row] = hidden[row] * weights["decoder.vocabulary_projection.weight"][quantity.id]
    relevance = norm(relevance, "decoder.final_norm")
    for layer in (1, 0):
        name = f"decoder.layers.{layer}"
        written, summed = at[f"{name}.feed_forward.output"], at[f"{name}.residual.out"]
        of_layer = written / summed * relevance
        hidden = at[f"{name}.feed_forward.hidden"]
        of_layer = linear(of_layer, hidden, weights[f"{name}.feed_forward.output_projection.weight"], written)
        read, before = at[f"{name}.feed_forward_norm.output"], at[f"{name}.feed_forward.pre_activation"]
        of_layer = linear(of_layer, read, weights[f"{name}.feed_forward.input_projection.weight"], before)
        middle = at[f"{name}.residual.after_self_attention"]
        relevance = middle / summed * relevance + norm(of_layer, f"{name}.feed_forward_norm")
        written = at[f"{name}.self_attention.output"]
        of_layer = written / middle * relevance
        of_layer = attention(of_layer, f"{name}.self_attention", at[f"{name}.self_attention_norm.output"])
        relevance = at[f"{name}.residual.in"] / middle * relevance + norm(of_layer, f"{name}.self_attention_norm")
    tokens = at["decoder.embedding.token"] / at["decoder.embedding.sum"] * relevance
    np.testing.assert_allclose(tokens.sum(axis=-1), found.target, rtol=1e-6, atol=1e-9)
