from __future__ import annotations

import pytest

from transformer.text.tokenizations import NO_ID, characters, with_merges, word_of, words

TEXT = "The cats sat – on the mât 😀!"


def test_all_merges_are_the_tokenizer_itself(tiny_tokenizer):
    assert list(with_merges(tiny_tokenizer, TEXT).ids) == tiny_tokenizer.encode(TEXT)


def test_no_merges_are_single_bytes_and_fewer_merges_never_give_fewer_tokens(tiny_tokenizer):
    raw = f" {TEXT}".encode()
    assert [tiny_tokenizer.token_bytes[id] for id in with_merges(tiny_tokenizer, TEXT, 0).ids] == [
        bytes([byte]) for byte in raw
    ]
    counts = [len(with_merges(tiny_tokenizer, TEXT, n)) for n in (0, 20, 60, None)]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]


@pytest.mark.parametrize("n_merges", [0, 30, None])
def test_every_cut_gives_the_text_back(tiny_tokenizer, n_merges):
    assert tiny_tokenizer.decode(with_merges(tiny_tokenizer, TEXT, n_merges).ids) == TEXT


def test_characters_and_words_give_the_text_back_and_say_what_is_unknown(tiny_tokenizer):
    for cut in (characters, words):
        assert cut(tiny_tokenizer, TEXT).text == TEXT
    by_display = {token.display: token.id for token in characters(tiny_tokenizer, TEXT)}
    assert by_display["s"] == tiny_tokenizer.to_id("s")
    assert by_display["😀"] == NO_ID
    assert [token.display for token in words(tiny_tokenizer, "The mat.")] == ["·The", "·mat", "."]


def test_empty_text_has_no_tokens(tiny_tokenizer):
    assert [len(cut(tiny_tokenizer, "")) for cut in (with_merges, characters, words)] == [0, 0, 0]


def test_a_negative_number_of_merges_is_refused(tiny_tokenizer):
    with pytest.raises(ValueError, match="n_merges is -1"):
        with_merges(tiny_tokenizer, "The", -1)


def test_every_piece_knows_its_word(tiny_tokenizer):
    ids = [1, *tiny_tokenizer.encode("The umbrellas 😀 sat."), 2]
    sequence = tiny_tokenizer.sequence(ids)
    found = [word_of(tiny_tokenizer, sequence, index) for index in range(len(ids))]
    assert found[0] is None and found[-1] is None
    assert list(dict.fromkeys(found[1:-1])) == tiny_tokenizer.words("The umbrellas 😀 sat.")
    for word, token in zip(found[1:-1], sequence.tokens[1:-1], strict=True):
        assert tiny_tokenizer.pieces[token.id] in word
