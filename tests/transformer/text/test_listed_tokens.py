"""Tokens given as texts: how they are shown in each notation, and which are special."""

from __future__ import annotations

import pytest

from transformer.errors import MessageError
from transformer.text.listed_tokens import sequence_of_pieces


@pytest.mark.parametrize(
    ("pieces", "shown", "text"),
    [
        (["The", "Ġcat", "Ċ"], ("The", "·cat", "⏎"), "The cat\n"),
        (["▁The", "▁c", "at", "<0x0A>"], ("·The", "·c", "at", "⏎"), "The cat\n"),
        (["[CLS]", "the", "walk", "##ing", "[SEP]"], ("[CLS]", "·the", "·walk", "ing", "[SEP]"), "the walking"),
        (["The", " cat", "<b>"], ("The", "·cat", "<b>"), "The cat<b>"),
        ([""], ("∅",), ""),
    ],
)
def test_spaces_are_read_in_every_notation(pieces: list[str], shown: tuple[str, ...], text: str) -> None:
    sequence = sequence_of_pieces(pieces)
    assert sequence.displays == shown
    assert sequence.text == text


def test_special_tokens_are_recognised_by_their_texts() -> None:
    named = ["<s>", "[CLS]", "<|begin_of_text|>", "</s>", "[SEP]", "<|endoftext|>", "<pad>", "[MASK]", "<unk>"]
    roles = [token.role for token in sequence_of_pieces(named)]
    assert roles == ["start"] * 3 + ["end"] * 3 + ["pad", "mask", "other"]
    assert not any(token.special for token in sequence_of_pieces(["<b>", "[1]", "<", "s", "x</s>"]))


def test_equal_pieces_have_one_id_and_labels_of_their_own() -> None:
    sequence = sequence_of_pieces(["a", "b", "a"])
    assert sequence.ids == (0, 1, 0)
    assert sequence.labels == ("a", "b", "a₂")
    assert sequence_of_pieces(sequence) is sequence


@pytest.mark.parametrize(("pieces", "problem"), [("The cat", "one text, 'The cat'"), ([17, 4], "Token 0 is 17")])
def test_what_is_no_list_of_texts_is_refused(pieces: object, problem: str) -> None:
    with pytest.raises(MessageError, match=problem):
        sequence_of_pieces(pieces)
