"""Rank correlation by hand, and measures over the same tokens."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.attention_maps.attention_path import norm_weighted
from transformer.attention_maps.rollout import attention_rollout
from transformer.attribution.attention_trust import (
    ANSWER_MEASURES,
    compare_with_attention,
    compare_without_attention,
    input_attributions,
    spearman,
)
from transformer.predictions.quantity import quantity_of

SENTENCE = "The old man told us a story."


def test_spearman_by_hand():
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # Ranks 1 2 3 4 5 and 2 1 4 3 5: 1 − 6·Σd²/(n(n²−1)) = 1 − 6·4/120 = 0.8.
    assert spearman([1, 2, 3, 4, 5], [0.2, 0.1, 9, 7, 100]) == pytest.approx(0.8)
    # Ties share their mean rank: ranks 1.5 1.5 3 against 1 2 3.
    assert spearman([5, 5, 6], [1, 2, 3]) == pytest.approx(np.corrcoef([1.5, 1.5, 3], [1, 2, 3])[0, 1])
    assert spearman([1, np.nan, 2, 3], [3, 9, 2, 1]) == pytest.approx(-1)


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


def test_rollout_ends_where_the_answer_is_read(tiny_checkpoint):
    def row_of(model, stack, kind, *, query, row):
        checkpoint = tiny_checkpoint(model)
        trace = transformer.trace(checkpoint, SENTENCE)
        found = input_attributions(checkpoint, quantity_of(trace, row=row), n_steps=1)
        view = trace.attention(stack, 0, kind)
        return trace, compare_with_attention(trace, view, found, head=0, query=query)["rollout"].values

    trace, values = row_of("bert", "encoder", "self", query=1, row=4)
    assert values == pytest.approx(attention_rollout(trace, "encoder").source[4], abs=1e-6)
    trace, values = row_of("sentiment", "encoder", "self", query=1, row=0)
    assert values == pytest.approx(attention_rollout(trace, "encoder").source.mean(axis=0), abs=1e-6)
    trace, values = row_of("translator", "encoder", "self", query=1, row=2)
    source = attention_rollout(trace, "decoder").source[2]
    assert values == pytest.approx(source / source.sum(), abs=1e-6)


def test_the_other_sentence_has_only_what_the_answer_says(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, SENTENCE, source_pads=1)
    found = input_attributions(checkpoint, quantity_of(trace, row=2), n_steps=2)
    target, source = compare_without_attention(found, "decoder"), compare_without_attention(found, "encoder")
    assert target.positions == (0, 1, 2) and len(source.positions) == len(trace.source) - 1
    assert tuple(measure.name for measure in target.measures) == ANSWER_MEASURES
    total = sum(part["integrated_gradients"].values.sum() for part in (target, source))
    assert total == pytest.approx(found.integrated.total, abs=1e-6)
