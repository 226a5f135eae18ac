"""The view model of the Attention page: its numbers equal the trace's."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import transformer
from transformer.attention_maps import attention_path
from transformer.attention_maps.attention_arithmetic import cell_arithmetic
from transformer.attention_maps.attention_path import norm_weighted
from transformer.attention_maps.rollout import attention_rollout
from transformer.runs.head_places import Head
from views.attention import attention_view_model as module
from views.attention.attention_view_model import AttentionChoices, attention_view_model

SENTENCE = "The old man told us a story."
HEADS = [
    ("translator", Head("encoder", "self", 1, 1)),
    ("translator", Head("decoder", "self", 1, 0)),
    ("translator", Head("decoder", "cross", 0, 1)),
    ("gpt", Head("decoder", "self", 1, 1)),
    ("bert", Head("encoder", "self", 0, 0)),
]


def test_the_example_of_the_docstring() -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(("checkpoint", "head"), HEADS)
def test_what_is_drawn_are_the_weights_the_values_or_the_rollout_of_the_trace(
    tiny_checkpoint: Callable, checkpoint: str, head: Head
) -> None:
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE, source_pads=2 * (checkpoint == "translator"))
    view = trace.attention(head.stack, head.layer, head.kind)
    passed_on = norm_weighted(trace, head.stack, head.layer, head.kind)[head.head]
    mixed = attention_rollout(trace, head.stack, layer=head.layer).view(head.kind)
    for drawing, expected in (
        ("map", view.weights[head.head]),
        ("lines", view.weights[head.head]),
        ("values", passed_on / passed_on.sum(axis=-1, keepdims=True)),
        ("rollout", mixed.weights[0]),
    ):
        for row in range(len(view.query)):
            shown = attention_view_model(trace, head, row, AttentionChoices(drawing=drawing, stretch=True))
            np.testing.assert_allclose(shown.drawn.weights[0], expected, rtol=1e-6)
            assert shown.limit == pytest.approx(expected[view.allowed].max())
            shares = expected[row][expected[row] > 0]
            assert shown.numbers.entropy == pytest.approx(-(shares * np.log2(shares)).sum(), abs=1e-5)
            assert shown.numbers.n_allowed == shown.drawn.allowed[row].sum()
            key, share = shown.strongest_value
            assert (key, share) == (passed_on[row].argmax(), pytest.approx(passed_on[row].max() / passed_on[row].sum()))


@pytest.mark.parametrize(("checkpoint", "head"), HEADS)
def test_the_arithmetic_of_a_cell_is_that_of_the_trace(tiny_checkpoint: Callable, checkpoint: str, head: Head) -> None:
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    shown = attention_view_model(trace, head, 2, AttentionChoices(key=1))
    expected = cell_arithmetic(trace, head.stack, head.layer, head.kind, head=head.head, query=2, key=1)
    assert shown.cell == (2, 1)
    assert shown.arithmetic.weight == expected.weight == pytest.approx(expected.recorded, abs=1e-6)
    np.testing.assert_array_equal(shown.arithmetic.scores, expected.scores)
    assert shown.reason_masked == ""
    assert attention_view_model(trace, head, 2).arithmetic is None


def test_a_masked_cell_says_why(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, source_pads=1)
    ahead = attention_view_model(trace, Head("decoder", "self", 0, 0), 1, AttentionChoices(key=2))
    padded = attention_view_model(trace, Head("decoder", "cross", 0, 0), 1, AttentionChoices(key=len(trace.source) - 1))
    assert (ahead.reason_masked, padded.reason_masked) == ("causal", "padding")


def test_rows_are_named_after_what_they_predict_in_cross_attention_until_the_reader_says_otherwise(
    tiny_checkpoint: Callable,
) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, target="Le vieil homme.")
    reads, predicts = trace.target.labels, trace.prediction.labels
    for head, predicted, expected in (
        (Head("decoder", "cross", 0, 0), None, predicts),
        (Head("decoder", "cross", 0, 0), False, reads),
        (Head("decoder", "self", 0, 0), None, reads),
        (Head("decoder", "self", 0, 0), True, predicts),
        (Head("encoder", "self", 0, 0), True, trace.source.labels),
    ):
        shown = attention_view_model(trace, head, 1, AttentionChoices(predicted=predicted))
        assert shown.row_labels == expected
        assert shown.predicted == (expected[1] if expected is predicts or expected == predicts else None)


def test_nothing_is_computed_twice_and_nothing_that_is_not_shown(
    tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    made: list[str] = []
    for owner, name in (
        (module, "attention_rollout"),
        (module, "norm_weighted"),
        (module, "attention_path"),
        (attention_path, "cell_of"),
    ):
        function = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, _f=function, _n=name, **more: made.append(_n) or _f(*a, **more))
    head = Head("decoder", "cross", 1, 1)
    shown = attention_view_model(trace, head, 1, AttentionChoices(drawing="rollout", key=2))
    for _ in range(2):
        assert shown.drawn and shown.numbers and shown.rollout and shown.arithmetic and shown.limit
    assert sorted(made) == ["attention_path", "attention_rollout", "cell_of"], "‖α·v‖ is not on a rollout"


@pytest.mark.parametrize(
    ("head", "row", "choices", "named"),
    [
        (Head("encoder", "self", 9, 0), 0, AttentionChoices(), "layer 9"),
        (Head("encoder", "self", 0, 9), 0, AttentionChoices(), "no head 9"),
        (Head("encoder", "self", 0, 0), 99, AttentionChoices(), "no query token 99"),
        (Head("encoder", "self", 0, 0), 0, AttentionChoices(key=99), "no key token 99"),
        (Head("encoder", "self", 0, 0), 0, AttentionChoices(drawing="cake"), "no drawing 'cake'"),
    ],
)
def test_what_does_not_exist_is_named(
    tiny_checkpoint: Callable, head: Head, row: int, choices: AttentionChoices, named: str
) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    with pytest.raises(ValueError, match=named):
        attention_view_model(trace, head, row, choices)


def test_a_view_model_cannot_be_changed(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    shown = attention_view_model(trace, Head("decoder", "self", 0, 0), 0)
    with pytest.raises(FrozenInstanceError):
        shown.row = 1
