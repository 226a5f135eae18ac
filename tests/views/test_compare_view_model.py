"""The view model of the Compare page: each number equals that of the traces."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from transformer.interventions.experiment import experiment
from transformer.predictions.comparison import difference_map, head_differences, word_diff
from transformer.runs.head_places import Head, all_heads
from views.compare.compare_view_model import _swap, compare_view_model, heads_like, words_of_fate
from views.compare.run_comparison import LONGEST, short_labels, shorten

SENTENCE, OTHER = "The old man told us a story.", "The old man told us a lie."


@pytest.fixture
def trace(tiny_checkpoint) -> transformer.Trace:
    return transformer.trace(tiny_checkpoint("translator"), SENTENCE)


def test_it_opens_on_the_head_whose_maps_differ_most(trace) -> None:
    found = experiment(trace, sentence=OTHER)
    shown = compare_view_model([found])
    assert shown.followed is None
    far = {
        head: float(head_differences(trace, found.changed, head.stack, head.kind)[head.layer, head.head])
        for head in all_heads(trace.checkpoint.config)
    }
    assert far[shown.location] == max(far.values()) > 0
    assert shown.are_sentences and not shown.are_models and not shown.is_one_run


def test_it_opens_on_the_head_that_looks_at_the_replaced_word_where_the_output_changes() -> None:
    one = "My grandmother bakes apple pie every Sunday."
    read = transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr"), one)
    shown = compare_view_model([experiment(read, sentence=one.replace("Sunday", "Monday"))])
    assert shown.swapped_words == ("Sunday", "Monday") and shown.swapped_outputs == ("dimanche", "lundi")
    assert shown.followed is not None and shown.location.kind == "cross"
    row = shown.changed_row
    assert row.queries == ("·dimanche", "·lundi")
    assert [row.keys[int(weights.argmax())] for weights in row.weights] == ["·Sunday / ·Monday"] * 2
    assert shown.followed.weight == pytest.approx(row.weights.max(axis=1).min())
    for head in all_heads(read.checkpoint.config):
        if head.kind == "cross" and head != shown.location:
            other = compare_view_model(shown.experiments, head)
            assert other.followed is None
            column = row.keys.index("·Sunday / ·Monday")
            pairs = zip(other.sides, shown.followed.rows, strict=True)
            both = [side.view.weights[head.head, at, column] for side, at in pairs]
            assert min(both) <= shown.followed.weight


def test_a_swap_is_one_word_for_another(trace) -> None:
    swaps = {
        OTHER: ("story", "lie"),
        "The old man told us all a story.": None,
        "The old woman told us a lie.": None,
        SENTENCE: None,
    }
    for other, swap in swaps.items():
        assert compare_view_model([experiment(trace, sentence=other)]).swapped_words == swap


def test_a_text_that_the_model_ends_has_its_own_log_probability() -> None:
    gpt, one = transformer.load(ROOT / "checkpoints" / "gpt-en"), "My grandmother bakes apple pie every Sunday."
    read = transformer.trace(gpt, one)
    shown = compare_view_model([experiment(read, sentence=one.replace("Sunday", "Monday"))])
    for side, found in zip(shown.sides, shown.complete_texts, strict=True):
        logits = side.trace.values("decoder.logits").astype(float)
        logits[:, list(gpt.framing.never)] = -np.inf
        log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        following = side.trace.prediction.ids
        assert found == pytest.approx(sum(log_p[row, id] for row, id in enumerate(following)), rel=1e-5)
    goes_on = transformer.trace(gpt, "He drinks cold milk, she drinks hot tea, he drinks cold")
    assert compare_view_model([experiment(read, sentence=goes_on.sentence)]).complete_texts is None


def test_a_word_that_moves_is_not_replaced_by_itself() -> None:
    pieces = word_diff("a b c", "b c a")
    assert words_of_fate(pieces, "removed") == words_of_fate(pieces, "added") == ["a"]
    assert _swap(pieces) is None and _swap(word_diff("a b c", "a d c")) == ("b", "d")


def test_the_difference_is_that_of_the_chosen_head(trace) -> None:
    location = Head("encoder", "self", 1, 1)
    found = experiment(trace, sentence=OTHER)
    shown = compare_view_model([found], location)
    views = [run.attention("encoder", 1) for run in (trace, found.changed)]
    np.testing.assert_array_equal(shown.differences[0].values, difference_map(*views, head=1).values)
    np.testing.assert_array_equal(shown.differences[0].values, found.map_difference(location).values)
    assert shown.limit >= np.abs(shown.differences[0].values).max()
    assert [answer.text for answer in shown.answers] == [found.answer_before.text, found.answer_after.text]


@pytest.mark.parametrize("other", [OTHER, "The old man told us all a story."])
def test_the_changed_row_has_the_weights_of_both_sentences(trace, other: str) -> None:
    location = Head("encoder", "self", 1, 1)
    found = experiment(trace, sentence=other)
    row = compare_view_model([found], location).changed_row
    for side, run in enumerate((trace, found.changed)):
        view = run.attention("encoder", 1)
        weights = view.weights[1, view.query.labels.index(row.queries[side])]
        np.testing.assert_array_equal(row.weights[side][row.known[side]], weights.astype(float))
    assert row.known.sum(axis=1).tolist() == [len(trace.source), len(found.changed.source)]
    assert len(row.keys) == row.known.shape[1] and row.known.any(axis=0).all(), "every column is of A, of B or of both"


@pytest.mark.parametrize(("other", "differ"), [("The old man.", True), (SENTENCE, False)])
def test_positions_differ_where_the_numbers_of_tokens_do(trace, other: str, differ: bool) -> None:
    assert compare_view_model([experiment(trace, sentence=other)]).positions_differ == differ


def test_a_run_beside_itself_has_nothing_that_differs(trace) -> None:
    shown = compare_view_model([experiment(trace)])
    assert shown.is_one_run and shown.furthest is None
    assert not shown.differences[0].values.any() and not shown.head_differences[0].any()
    assert not shown.changed_roles[0] and shown.changed_row is None


def test_a_head_is_most_like_itself(trace) -> None:
    location = Head("decoder", "cross", 1, 0)
    alike = heads_like(location, trace, trace)
    assert alike.best == (1, 0) and alike.is_known and not alike.is_other_kind
    assert alike.distances[1, 0] == pytest.approx(0, abs=1e-9)


def test_another_file_of_the_model_has_the_same_roles_and_logits(trace) -> None:
    shown = compare_view_model([experiment(trace)], Head("decoder", "self", 0, 0))
    tokens = shown.likely_tokens
    assert tokens is not None and tokens.others[0].kl == tokens.others[0].most == 0
    assert list(tokens.probabilities[0]) == sorted(tokens.probabilities[0], reverse=True)


def test_the_row_that_attends_elsewhere_is_named_with_both_tokens(trace) -> None:
    found = experiment(trace, sentence=OTHER)
    for location in all_heads(trace.checkpoint.config):
        shown = compare_view_model([found], location)
        shift = shown.largest_shift
        if shift is None:
            continue
        first, second = shown.sides
        row = first.view.query.labels.index(shift.query)
        other_row = dict(shown.differences[0].query.pairs)[row]
        most = int(first.view.weights[location.head, row].argmax())
        other_most = int(second.view.weights[location.head, other_row].argmax())
        assert (first.view.key.labels[most], second.view.key.labels[other_most]) == (shift.before, shift.after)
    assert compare_view_model([experiment(trace)]).largest_shift is None


def test_a_shortened_sentence_keeps_the_word_that_differs() -> None:
    one = "The old man who lives near the sea told us a long story every Sunday."
    other = one.replace("Sunday", "Monday")
    assert shorten(one, other).endswith("Sunday.") and shorten(one, other).startswith("…")
    assert len(shorten(one, other)) <= LONGEST and shorten("A cat.", "A dog.") == "A cat."
    assert shorten(one, "My dog sleeps.") == f"{one[: LONGEST - 1]}…"
    assert short_labels(["·Sunday / ·Monday", "·the"]) == ["·Sunday*", "·the"]
