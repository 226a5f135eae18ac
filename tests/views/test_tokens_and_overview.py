"""BPE merges and rulers of tokens."""

from __future__ import annotations

import pytest

from charts.figures.token_boxes import merge_tree, token_lengths
from transformer.text.tokens import Token, TokenSequence


def test_merged_pieces_stand_below_their_parts():
    figure = merge_tree([["·", "c", "a", "t"], ["·", "c", "at"], ["·", "cat"], ["·cat"]], ranks=[3, 20, 7])
    old, new = figure.data
    assert new.name == "joined in this step"
    assert list(new.text) == ["at", "cat", "·cat"]
    assert list(new.y) == [1, 2, 3]
    assert [round(base) for base in new.base] == [2, 1, 0]
    assert [round(width) for width in new.x] == [2, 3, 4]
    assert len(old.text) == 4 + 2 + 1
    assert list(figure.layout.yaxis.ticktext)[1:] == ["merge 1 (rule 3)", "merge 2 (rule 20)", "merge 3 (rule 7)"]


def test_equal_pieces_may_merge_twice_in_one_step():
    figure = merge_tree([["a", "b", "a", "b"], ["ab", "ab"]])
    assert list(figure.data[1].text) == ["ab", "ab"]
    assert [round(base) for base in figure.data[1].base] == [0, 2]


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([["a", "b"], ["ac"]], "after merge 1 stands the piece 'ac', but the pieces before it give 'ab'"),
        ([["a", "b"], ["a"]], r"merge 1 lost the pieces \['b'\]"),
        ([], r"states is \[\]; give at least the first state"),
    ],
)
def test_impossible_merges_are_refused(states, message):
    with pytest.raises(ValueError, match=message):
        merge_tree(states)


def test_ranks_must_fit_the_merges():
    with pytest.raises(ValueError, match="ranks has 2 entries, but there are 1 merges"):
        merge_tree([["a", "b"], ["ab"]], ranks=[1, 2])


def test_ruler_counts_bytes_and_leaves_special_tokens_out():
    pieces = [("<s>", "<s>", True), ("·été", " été", False), ("⟨F0⟩", "", False), (".", ".", False)]
    tokens = TokenSequence(
        tuple(Token(place, place, text, display, special) for place, (display, text, special) in enumerate(pieces))
    )
    figure = token_lengths({"<ours>": tokens})
    bars = figure.data[0]
    assert list(bars.text) == ["·été", "⟨F0⟩", "."]
    assert list(bars.x) == [6, 1, 1], "é is two bytes, a lone byte is one"
    assert list(bars.base) == [0, 6, 7]
    assert [entry[0] for entry in bars.customdata] == [6, 1, 1], "the hover says the width, not where the box ends"
    assert list(figure.layout.yaxis.ticktext) == ["&lt;ours&gt;: 3 tokens"]
    assert bars.marker.color[0] != bars.marker.color[1]
    with pytest.raises(ValueError, match="sequences is empty"):
        token_lengths({})
