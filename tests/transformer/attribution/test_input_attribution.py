"""Attributions compared with known results, and attention with them, over the same tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.single_runs import logits_alone
from transformer.attention_maps.attention_path import norm_weighted
from transformer.attention_maps.rollout import attention_rollout
from transformer.attribution.attention_trust import (
    ANSWER_MEASURES,
    compare_with_attention,
    compare_without_attention,
    input_attributions,
    spearman,
)
from transformer.attribution.input_attribution import gradient_times_input, integrated_gradients
from transformer.attribution.leave_one_out import leave_one_out, remove_each
from transformer.predictions.target import QUANTITIES, quantity_of
from transformer.runs.edits import Edit
from transformer.text.word_spans import words_of

SENTENCE = "The old man told us a story."
ROWS = {"translator": 3, "gpt": 4, "bert": 2, "sentiment": 0}
KINDS = tuple(ROWS)


def asked(checkpoint, kind, *, of="log_probability", **more):
    trace = transformer.trace(checkpoint, SENTENCE, **more)
    return trace, quantity_of(trace, row=ROWS[kind], of=of)


def number_in(logits, checkpoint, quantity) -> float:
    """Return the logit, log p or p of the output in a row; what writes never writes <pad> and <s>."""
    logits = torch.as_tensor(logits).double()
    if quantity.of == "logit":
        return float(logits[quantity.token])
    if checkpoint.config.has_decoder:
        logits[list(checkpoint.framing.never)] = -torch.inf
    said = float(logits.log_softmax(-1)[quantity.token])
    return said if quantity.of == "log_probability" else np.exp(said)


def recorded(trace, quantity) -> float:
    return number_in(np.atleast_2d(trace.values(quantity.logits))[quantity.row].copy(), trace.checkpoint, quantity)


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
    logits = logits_alone(checkpoint, quantity.read.values(), edits)
    row = logits if quantity.position is None else logits[quantity.row]
    assert found.baseline_value == pytest.approx(number_in(row, checkpoint, quantity), abs=1e-4)


def baseline_of(checkpoint, stack, name):
    table = getattr(checkpoint.model, stack).embedding.table.weight
    return (table[0] if name == "pad" else table.mean(dim=0)) * checkpoint.config.d_model**0.5


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
            moved = quantity.position is not None and quantity.stack == stack and position <= quantity.row
            row = logits if kind == "sentiment" else logits[quantity.row - moved]
            expected = recorded(trace, quantity) - number_in(row, checkpoint, quantity)
            assert values[position] == pytest.approx(expected, abs=1e-4)


def test_a_lone_token_cannot_be_left_out(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, "x")
    found = remove_each(checkpoint, quantity_of(trace, row=0))
    assert np.isnan(found.target).all() and len(found.target) == 1 and np.isfinite(found.source).all()


@pytest.mark.parametrize(
    ("kind", "ask", "message"),
    [
        ("gpt", lambda trace: quantity_of(trace, row=99), "position is 99; the decoder read the positions 0 to"),
        ("gpt", lambda trace: quantity_of(trace, of="loss"), "of is 'loss'; choose one of log_probability"),
        ("sentiment", lambda trace: quantity_of(trace, row=3), "position is 3, but a classifier"),
        ("gpt", lambda trace: gradients(trace, baseline="noise"), "baseline is 'noise'; choose one of zero, pad, mean"),
        ("gpt", lambda trace: gradients(trace, n_steps=0), "n_steps is 0"),
        ("bert", lambda trace: leave_one_out(trace.checkpoint, SENTENCE), "tiny-bert is not a classifier"),
    ],
)
def test_what_is_not_there_is_refused(tiny_checkpoint, kind, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(transformer.trace(tiny_checkpoint(kind), SENTENCE))


def gradients(trace, **more):
    return integrated_gradients(trace.checkpoint, quantity_of(trace, row=4), **more)


# ---- leaving whole words out ----------------------------------------------------------------------------------------


def test_words_keep_their_pieces_and_punctuation_stands_alone(tiny_tokenizer):
    def words(text):
        tokens = tiny_tokenizer.sequence([1, *tiny_tokenizer.encode(text), 2])
        found = words_of(tokens)
        covered = [position for word in found for position in range(word.start, word.end)]
        assert covered == list(range(1, len(tokens) - 1))  # every token of the text belongs to exactly one word
        return [word.text for word in found]

    assert words("Unbelievable, isn't it?") == ["Unbelievable", ",", "isn't", "it", "?"]
    assert words("good 😀!")[0] == "good"
    assert "😀" in "".join(words("good 😀!"))
    assert words("one\ntwo")[-1] == "two"
    assert words("one \n ")[1:] == ["·⏎", "·"]
    assert words("a <b>")[1:] == ["<", "b", ">"]


# ---- attention beside attributions -----------------------------------------------------------------------------------


def test_spearman_is_scipys():
    scipy_stats = pytest.importorskip("scipy.stats")
    numbers = np.random.default_rng(1)
    for _ in range(20):
        first, second = numbers.integers(0, 6, 12), numbers.normal(size=12).round(1)
        assert spearman(first, second) == pytest.approx(scipy_stats.spearmanr(first, second).statistic)


def test_where_there_is_no_order_there_is_no_agreement():
    assert np.isnan(spearman([1, 2], [1, 2]))
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3]))
    with pytest.raises(ValueError, match="one length"):
        spearman([1, 2, 3], [1, 2])


CASES = [
    ("translator", "decoder", "cross", 3, 3),
    ("translator", "decoder", "self", 3, 3),
    ("translator", "encoder", "self", 2, 1),
    ("gpt", "decoder", "self", 5, 5),
    ("bert", "encoder", "self", 2, 4),
    ("sentiment", "encoder", "self", 2, 0),
]

ATTENTION_MEASURES = ("head", "heads", "weighted", "rollout")


@pytest.mark.parametrize(("model", "stack", "kind", "query", "row"), CASES)
def test_every_row_is_the_measure_it_is_named_after(tiny_checkpoint, model, stack, kind, query, row):
    checkpoint = tiny_checkpoint(model)
    trace = transformer.trace(checkpoint, SENTENCE, source_pads=0 if model == "gpt" else 2)
    found = input_attributions(checkpoint, quantity_of(trace, row=row), n_steps=2)
    view = trace.attention(stack, 1, kind)
    aligned = compare_with_attention(trace, view, found, head=1, query=query)
    assert tuple(measure.name for measure in aligned.measures) == ATTENTION_MEASURES + ANSWER_MEASURES
    positions = list(aligned.positions)
    assert positions == np.flatnonzero(view.allowed[query]).tolist()  # no padding, no later tokens
    assert all(measure.values.shape == (len(positions),) for measure in aligned.measures)
    for name in ATTENTION_MEASURES:
        assert aligned[name].values.sum() == pytest.approx(1, abs=1e-5) and not aligned[name].signed
    assert aligned["head"].values == pytest.approx(view.weights[1, query, positions])
    assert aligned["heads"].values == pytest.approx(view.weights[:, query, positions].mean(axis=0))
    lengths = norm_weighted(trace, stack, 1, kind)[1, query]
    assert aligned["weighted"].values == pytest.approx((lengths / lengths.sum())[positions], abs=1e-6)
    of_source = (stack, kind) != ("decoder", "self")
    removal = found.removal.source if of_source else found.removal.target
    assert aligned["leave_one_out"].values == pytest.approx(removal[positions], nan_ok=True)
    integrated = found.integrated.source if of_source else found.integrated.target
    assert aligned["integrated_gradients"].values == pytest.approx(integrated[positions])
    expected = spearman(view.weights[1, query, positions], np.abs(removal[positions]))
    assert aligned["head"].agreement == pytest.approx(expected)
    assert np.isnan(aligned["leave_one_out"].agreement)


@pytest.mark.parametrize(
    ("model", "row", "answered"), [("bert", 4, "encoder"), ("sentiment", 0, "encoder"), ("translator", 2, "decoder")]
)
def test_rollout_ends_where_the_answer_is_read(tiny_checkpoint, model, row, answered):
    trace = transformer.trace(tiny_checkpoint(model), SENTENCE)
    found = input_attributions(trace.checkpoint, quantity_of(trace, row=row), n_steps=1)
    values = compare_with_attention(trace, trace.attention("encoder", 0), found, head=0, query=1)["rollout"].values
    shares = attention_rollout(trace, answered).source.values
    shares = shares.mean(axis=0) if model == "sentiment" else shares[row]
    assert values == pytest.approx(shares / shares.sum(), abs=1e-6)


def test_the_other_sentence_has_only_what_the_answer_says(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, SENTENCE, source_pads=1)
    found = input_attributions(checkpoint, quantity_of(trace, row=2), n_steps=2)
    target, source = compare_without_attention(found, "decoder"), compare_without_attention(found, "encoder")
    assert target.positions == (0, 1, 2) and len(source.positions) == len(trace.source) - 1
    assert tuple(measure.name for measure in target.measures) == ANSWER_MEASURES
    total = sum(part["integrated_gradients"].values.sum() for part in (target, source))
    assert total == pytest.approx(found.integrated.total, abs=1e-6)
