"""The arithmetic of an attention weight equals the recorded pass for every kind of model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from transformer.attention_maps.attention_arithmetic import cell_arithmetic, query_arithmetic
from transformer.attention_maps.attention_path import attention_path, norm_weighted, output_sum, value_norms
from transformer.interventions.head_importance import head_effect
from transformer.runs.inputs import prompt_ids
from transformer.text.tokenizer import NEVER_WRITTEN

SENTENCE = "The old man ___ the sea."
TARGET = "Le vieil homme."
PLACES = [
    ("translator", "encoder", "self"),
    ("translator", "decoder", "self"),
    ("translator", "decoder", "cross"),
    ("gpt", "decoder", "self"),
    ("bert", "encoder", "self"),
    ("sentiment", "encoder", "self"),
]


@pytest.fixture(params=PLACES, ids=["-".join(place) for place in PLACES])
def place(request: pytest.FixtureRequest, tiny_checkpoint: Callable[[str], transformer.Checkpoint]) -> tuple:
    """Yield (checkpoint, trace, stack, kind), with two pads if there is an encoder."""
    name, stack, kind = request.param
    checkpoint = tiny_checkpoint(name)
    target = TARGET if checkpoint.config.has_decoder else None
    pads = 2 if checkpoint.config.has_encoder else 0
    return checkpoint, transformer.trace(checkpoint, SENTENCE, target, source_pads=pads), stack, kind


def test_a_channel_of_each_heads_query_worked_out_by_hand_is_the_recorded_number(place: tuple) -> None:
    checkpoint, trace, stack, kind = place
    for head in range(checkpoint.config.n_heads):
        found = query_arithmetic(trace, stack, 1, kind, head=head, row=0)  # at position 0 no query is rotated
        assert found.value == pytest.approx(found.recorded, abs=1e-5)


def test_every_cell_worked_out_by_hand_is_the_recorded_weight(place: tuple) -> None:
    _, trace, stack, kind = place
    view = trace.attention(stack, 1, kind)
    for query in range(len(view.query)):
        for key in range(len(view.key)):
            cell = cell_arithmetic(trace, stack, 1, kind, head=1, query=query, key=key)
            assert cell.recorded == view.weights[1, query, key]
            assert abs(cell.difference) < 1e-6
            assert cell.score == pytest.approx(float(view.scores[1, query, key]), abs=1e-5)
            assert cell.products.sum() == pytest.approx(cell.dot_product)
            if not view.allowed[query, key]:
                assert cell.weight == 0.0 and not cell.is_allowed


def test_a_row_of_the_arithmetic_sums_to_one(place: tuple) -> None:
    _, trace, stack, kind = place
    cell = cell_arithmetic(trace, stack, 0, kind, head=0, query=2, key=0)
    assert cell.weights.sum() == pytest.approx(1.0)
    assert cell.powers.max() == 1.0  # the largest score is subtracted first
    assert cell.weight == pytest.approx(cell.power / cell.denominator)


def test_the_relative_bias_is_part_of_the_sum(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("sentiment"), SENTENCE)
    cell = cell_arithmetic(trace, "encoder", 0, "self", head=1, query=3, key=1)
    assert cell.bias == pytest.approx(float(trace.values("encoder.position_bias.values")[1, 3, 1]))
    assert abs(cell.bias) > 1e-3
    assert cell.score == pytest.approx(cell.dot_product / np.sqrt(len(cell.query)) + cell.bias)


def test_without_relative_positions_there_is_no_bias(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    assert cell_arithmetic(trace, "encoder", 0, "self", head=0, query=0, key=0).bias is None


@pytest.mark.parametrize(("wrong", "message"), [({"head": 9}, "no head 9"), ({"key": 99}, "no key token 99")])
def test_a_cell_that_is_not_there(tiny_checkpoint: Callable, wrong: dict, message: str) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    with pytest.raises(ValueError, match=message):
        cell_arithmetic(trace, "encoder", 0, "self", **{"head": 0, "query": 0, "key": 0, **wrong})


def test_the_path_leads_from_the_products_to_the_recorded_scores_and_context(place: tuple) -> None:
    _, trace, stack, kind = place
    path = attention_path(trace, stack, 1, kind, head=1)
    scores = path.products / np.sqrt(path.d_head) + (0.0 if path.bias is None else path.bias)
    np.testing.assert_allclose(scores, path.scores, atol=1e-5)
    np.testing.assert_allclose(path.weights @ path.value, path.context, atol=1e-5)


def test_without_scaling_the_row_is_the_softmax_of_the_products(place: tuple) -> None:
    _, trace, stack, kind = place
    path = attention_path(trace, stack, 0, kind, head=0)
    row, allowed = 1, path.view.allowed[1]
    powers = np.exp(path.products[row] + (0.0 if path.bias is None else path.bias[row])) * allowed
    np.testing.assert_allclose(path.weights_without_scaling(row), powers / powers.sum(), atol=1e-5)


def test_what_the_heads_write_adds_up_to_the_recorded_output(place: tuple) -> None:
    checkpoint, trace, stack, kind = place
    parts = output_sum(trace, stack, 1, kind, row=2)
    assert parts.contributions.shape == (checkpoint.config.n_heads, checkpoint.config.d_model)
    assert np.abs(parts.bias).max() > 1e-3  # otherwise a missing bias would go unnoticed
    assert parts.error < 1e-5


def test_the_norm_weighted_map_is_the_length_of_what_each_token_adds(place: tuple) -> None:
    checkpoint, trace, stack, kind = place
    name = f"{stack}.layers.1.{kind}_attention"
    weights, values = trace.values(f"{name}.weights"), trace.values(f"{name}.value")
    matrix = checkpoint.model.get_submodule(name).output_projection.weight.detach().numpy()
    d_head = checkpoint.config.d_head
    found = norm_weighted(trace, stack, 1, kind)
    for head, query, key in ((0, 0, 0), (1, 2, 1), (1, 3, 3)):
        added = matrix[:, head * d_head : (head + 1) * d_head] @ (weights[head, query, key] * values[head, key])
        assert found[head, query, key] == pytest.approx(float(np.linalg.norm(added)), rel=1e-4, abs=1e-7)
    assert value_norms(trace, stack, 1, kind).shape == values.shape[:2]


def test_the_effect_of_a_head_is_what_a_pass_without_it_says(place: tuple) -> None:
    checkpoint, trace, stack, kind = place
    effect = head_effect(trace, stack, 1, kind, head=0)
    target = TARGET if trace.forced else None
    pads = 2 if checkpoint.config.has_encoder else 0
    edit = transformer.ablate_head(stack, layer=1, kind=kind, head=0)
    without = transformer.trace(checkpoint, SENTENCE, target, edits=[edit], source_pads=pads)
    if checkpoint.config.n_classes:
        logits = [run.values("classifier.logits").astype(np.float64) for run in (trace, without)]
        chosen = [int(logits[0].argmax())]
        rows = [[values] for values in logits]
    else:
        name = "decoder.logits" if checkpoint.config.has_decoder else "encoder.logits"
        positions = asked_at(checkpoint, trace)
        chosen = [trace.prediction[position].id for position in positions]
        rows = [run.values(name).astype(np.float64)[positions] for run in (trace, without)]
    if checkpoint.config.has_decoder:
        for run in rows:
            run[:, NEVER_WRITTEN] = -np.inf
    for found, run in zip((effect.before, effect.after), rows, strict=True):
        expected = [row[i] - np.log(np.exp(row).sum()) for row, i in zip(run, chosen, strict=True)]
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert effect.change == pytest.approx(float((effect.after - effect.before).sum()))
    assert effect.factor == pytest.approx(np.exp(effect.change))
    assert effect.change != 0.0


def asked_at(checkpoint: transformer.Checkpoint, trace: transformer.Trace) -> list[int]:
    """Return the rows of the logits that predict the output: blanks, or everything after the typed text.

    The end token after a given output is not included, because nobody typed it.
    """
    if trace.target is None:
        return [token.index for token in trace.source if token.display == "<mask>"]
    first = 0 if checkpoint.config.has_encoder else len(prompt_ids(checkpoint, SENTENCE)) - 1
    return list(range(first, len(trace.target) - trace.forced))


def test_a_masked_token_model_without_a_blank_was_asked_nothing(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The old man.")
    assert head_effect(trace, "encoder", 0, "self", head=0).displays == ()


def test_measuring_a_head_leaves_the_model_as_it_was(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    before = transformer.trace(checkpoint, SENTENCE, "Le mer.")
    head_effect(before, "decoder", 0, "cross", head=0)
    after = transformer.trace(checkpoint, SENTENCE, "Le mer.")
    np.testing.assert_array_equal(before.values("decoder.logits"), after.values("decoder.logits"))
