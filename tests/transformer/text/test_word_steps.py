"""The merges of a word end with the pieces of the tokenizer; words of tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transformer.text.foreign_folders import (
    byte_level,
    opened,
    unigram,
    with_byte_fallback,
    word_piece,
    write,
)
from transformer.text.byte_pair_merges import merge_steps
from transformer.text.guests.tokenizer import GuestTokenizer
from transformer.text.tokenizations import NO_ID, characters, word_of, words

TEXT = "The unbelievable cat, sat on 64 mats; école!"


@pytest.fixture
def bert(tmp_path: Path) -> GuestTokenizer:
    return opened(write(tmp_path, {"model_type": "bert"}, None, word_piece()))


@pytest.fixture
def t5(tmp_path: Path) -> GuestTokenizer:
    return opened(write(tmp_path, {"model_type": "t5"}, None, unigram(("<pad>", "</s>", "<unk>"), "<unk>")))


@pytest.fixture
def llama(tmp_path: Path) -> GuestTokenizer:
    return opened(write(tmp_path, {"model_type": "llama"}, {"tokenizer_class": "LlamaTokenizer"}, with_byte_fallback()))


def test_the_first_word_begins_without_a_space(tmp_path: Path) -> None:
    gpt2 = opened(write(tmp_path, {"model_type": "gpt2"}, None, byte_level(special=("<|endoftext|>",))))
    begins = [token.starts_word for token in gpt2.sequence(gpt2.encode("unbelievable cats"))]
    assert begins[0] and sum(begins) == 2
    assert gpt2.sequence([0, *gpt2.encode("unbelievable")])[1].starts_word


def test_merges_are_the_tokens(llama: GuestTokenizer) -> None:
    pieces = [piece for word in llama.words(TEXT) for piece in merge_steps(llama, word)[-1].pieces]
    assert [llama.to_id(piece) for piece in pieces if llama.to_id(piece)] == [
        id for id in llama.encode(TEXT) if not llama.pieces[id].startswith("<0x")
    ]


def test_the_word_of_a_token(bert: GuestTokenizer, t5: GuestTokenizer, llama: GuestTokenizer) -> None:
    for tokenizer, cat in ((bert, "cat"), (t5, "▁cat"), (llama, "▁cat")):
        sequence = tokenizer.sequence([*tokenizer.before, *tokenizer.encode("The cat sat"), *tokenizer.after])
        found = [word_of(tokenizer, sequence, index) for index in range(len(sequence))]
        assert cat in found
        assert [word for word, token in zip(found, sequence, strict=True) if token.special] == [None] * (
            len(tokenizer.before) + len(tokenizer.after)
        )
        cut = words(tokenizer, "The cat xqz")
        assert [token.display for token in cut] in (["·the", "·cat", "·xqz"], ["·The", "·cat", "·xqz"])
        assert cut[2].id == NO_ID
        assert "".join(token.text for token in characters(tokenizer, "a b")).strip() == "a b"
