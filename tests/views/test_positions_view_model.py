"""The view model of Positions: the source of its numbers, both directions, reordered tokens."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from transformer.layers.positional_encodings import without_positions
from ui.words.texts import page_texts
from views.positions.positions_view_model import ReorderedInput, most_changed_head, positions_view_model

SENTENCE = "The old man told us a story."


@pytest.fixture
def trace_of(tiny_checkpoint):
    return lambda name, sentence=SENTENCE: transformer.trace(tiny_checkpoint(name), sentence)


@pytest.mark.parametrize(
    ("name", "scheme", "sections"),
    [
        ("tiny-translator", "sinusoidal", ("heatmap", "waves", "similarity", "sum", "distance")),
        ("tiny-gpt", "learned", ("heatmap", "waves", "similarity", "sum", "distance")),
        ("tiny-bert", "rotary", ("heatmap", "angles", "distance")),
        ("tiny-sentiment", "relative", ("bias", "distance")),
    ],
)
def test_every_scheme_has_its_sections_and_the_model_s_own_numbers(trace_of, name, scheme, sections):
    trace = trace_of(name)
    view_model = positions_view_model(trace, stack=trace.stacks[0], layer=99, head=99, token=99)
    assert (view_model.scheme, view_model.sections) == (scheme, sections)
    assert view_model.token == len(view_model.tokens) - 1
    assert view_model.layer == trace.n_layers(view_model.stack) - 1
    if "sum" in sections:
        added = trace.values(f"{view_model.stack}.embedding.position")
        np.testing.assert_allclose(view_model.table(len(view_model.tokens)), added, atol=1e-6)


def test_only_the_sinusoidal_table_is_the_same_in_both_directions():
    """The learned table of bert-en: from position 4, the cosine is 0.16 two back and 0.31 two ahead."""
    learned = transformer.trace(transformer.load(ROOT / "checkpoints" / "bert-en"), "The cat ___ on the mat.")
    view_model = positions_view_model(learned, stack="encoder", token=4)
    position, back, ahead = view_model.directions(view_model.table(64))
    assert (position, round(back, 2), round(ahead, 2)) == (4, 0.16, 0.31)
    assert view_model.shift_deviation(view_model.table(64)) is None
    added = transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr-2017"), "The cat sat on the mat.")
    formula = positions_view_model(added, stack="encoder", token=4)
    position, back, ahead = formula.directions(formula.table(64))
    assert position == 4 and back == pytest.approx(ahead, abs=1e-6)
    assert formula.shift_deviation(formula.table(64)) < 1e-5
    assert formula.directions(formula.table(4)) is None
    for text in page_texts("positions"):
        same = "same in both directions" if text.language == "en" else "la même dans les deux sens"
        assert same in text["similarity_sinusoidal"]
        assert same not in text["similarity_caption"] + text["similarity_learned"]


def test_what_is_said_of_alibi_and_of_the_causal_mask_claims_no_more_than_the_papers():
    english, french = page_texts("positions")
    assert "has not seen" in english["alibi_formula"] and "n’a pas vues" in french["alibi_formula"]
    for text in (english, french):
        assert "Haviv et al. 2022" in text.look_for_of({"decoder-only"})[0]
        assert "(2i, 2i + 1)" in text["rotary_layouts"]


def read(trace):
    stack = trace.stacks[0]
    return ReorderedInput(trace, len(trace.tokens(stack)))


@pytest.mark.parametrize("change", ["swap", "shuffle", "reverse", "remove", "remove_all"])
def test_a_new_order_moves_no_special_token(trace_of, change):
    given = read(trace_of("tiny-translator"))
    new = given.new_order(change, pair=given.pairs()[0], shuffle=3)
    assert new.stacks == (("encoder", "decoder") if change == "remove_all" else ("encoder",))
    if change.startswith("remove"):
        assert new.order is None
        return
    assert sorted(new.order) == list(range(given.n_read))
    assert all(new.order[token.index] == token.index for token in given.tokens if token.special)
    moved = [index for index in range(given.n_read) if new.order[index] != index]
    if change == "swap":
        assert moved == sorted(new.pair)
    elif change == "reverse":
        assert [new.order[index] for index in given.movable] == given.movable[::-1]


def test_the_first_pair_is_of_words_beyond_the_prefix_of_a_task(trace_of):
    given = read(trace_of("tiny-translator"))
    first, second = given.pairs()[0]
    assert given.tokens[first].text.strip().isalnum() and first < second
    later, _ = given.pairs("The old man")[0]
    assert sum(len(token.text) for token in given.tokens[:later] if not token.special) >= len("The old man")


def test_the_first_pair_is_of_whole_words():
    checkpoint = transformer.load(ROOT / "checkpoints" / "en-fr")
    given = read(transformer.trace(checkpoint, "My grandmother bakes apple pie every Sunday."))
    pairs = [tuple(given.tokens[index].text.strip() for index in pair) for pair in given.pairs()]
    assert pairs[0] == ("pie", "Sunday"), "neither 'other' of 'grandmother' nor 'akes' of 'bakes'"
    assert len(set(pairs)) == len(pairs) == 6 and set(sum(pairs, ())) == {"apple", "pie", "every", "Sunday"}


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt"])
def test_the_change_of_attention_is_the_traces(trace_of, name):
    before = trace_of(name)
    given = read(before)
    new = given.new_order("remove", pair=given.pairs()[0], followed=3)
    stack, checkpoint = given.stack, before.checkpoint
    assert len(new.edits(checkpoint)) == len(without_positions(checkpoint.model, stack))
    after = transformer.trace(checkpoint, SENTENCE, edits=new.edits(checkpoint))
    change = given.attention_change(after, new.followed)
    weights = [one.attention(stack, 0, "self").weights[:, 3] for one in (before, after)]
    moved = np.abs(weights[0] - weights[1]).sum(axis=1)
    assert change.head == moved.argmax() == most_changed_head(*weights)
    assert len(change.tokens) == (4 if name == "tiny-gpt" else given.n_read)
    np.testing.assert_array_equal(change.after, weights[1][change.head][: len(change.tokens)])
    assert change.before.sum() == pytest.approx(1, abs=1e-5)
