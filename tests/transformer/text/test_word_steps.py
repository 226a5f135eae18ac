"""The steps that split a word end with the pieces of the tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transformer.text.foreign_folders import (
    SENTENCES,
    byte_level,
    opened,
    unigram,
    with_byte_fallback,
    word_piece,
    write,
)
from transformer.text.best_path import path_steps, pieces_of_path
from transformer.text.byte_pair_merges import merge_steps
from transformer.text.foreign.tokenizer import ForeignTokenizer
from transformer.text.longest_match import MatchStep, match_steps, pieces_of
from transformer.text.tokenizations import NO_ID, characters, word_of, words

TEXT = "The unbelievable cat, sat on 64 mats; école!"


@pytest.fixture
def bert(tmp_path: Path) -> ForeignTokenizer:
    return opened(write(tmp_path, {"model_type": "bert"}, None, word_piece()))


@pytest.fixture
def t5(tmp_path: Path) -> ForeignTokenizer:
    return opened(write(tmp_path, {"model_type": "t5"}, None, unigram(("<pad>", "</s>", "<unk>"), "<unk>")))


@pytest.fixture
def llama(tmp_path: Path) -> ForeignTokenizer:
    return opened(write(tmp_path, {"model_type": "llama"}, {"tokenizer_class": "LlamaTokenizer"}, with_byte_fallback()))


def test_longest_matches_are_the_tokens(bert: ForeignTokenizer) -> None:
    unknown = bert.to_id("[UNK]")
    for text in [TEXT, *SENTENCES[:7], "🙂 xyz"]:
        ids = []
        for word in bert.words(text):
            pieces = pieces_of(match_steps(bert, word))
            ids += [unknown] if pieces is None else map(bert.to_id, pieces)
        assert ids == bert.encode(text)


def test_a_longest_match_by_hand(bert: ForeignTokenizer) -> None:
    known = {"un": 0, "##believ": 1, "##able": 2, "##a": 3}
    bert.to_id = known.get
    assert match_steps(bert, "unable") == [
        MatchStep(0, ("unable", "unabl", "unab", "una"), "un"),
        MatchStep(2, (), "##able"),
    ]
    steps = match_steps(bert, "unabc")
    assert steps[1:] == [MatchStep(2, ("##abc", "##ab"), "##a"), MatchStep(3, ("##bc", "##b"), None)]
    assert pieces_of(steps) is None


def test_best_paths_are_the_tokens(t5: ForeignTokenizer) -> None:
    unknown = t5.to_id("<unk>")
    for text in [TEXT, *SENTENCES[:6]]:
        ids = []
        for word in t5.words(text):
            path = pieces_of_path(path_steps(t5, word))
            ids += [t5.to_id(step.piece) if step.known else unknown for step in path]
            assert "".join(step.piece for step in path) == word
        assert ids == t5.encode(text)


def test_the_first_word_begins_without_a_space(tmp_path: Path) -> None:
    gpt2 = opened(write(tmp_path, {"model_type": "gpt2"}, None, byte_level(special=("<|endoftext|>",))))
    begins = [token.starts_word for token in gpt2.sequence(gpt2.encode("unbelievable cats"))]
    assert begins[0] and sum(begins) == 2
    assert gpt2.sequence([0, *gpt2.encode("unbelievable")])[1].starts_word


def test_merges_are_the_tokens(llama: ForeignTokenizer) -> None:
    pieces = [piece for word in llama.words(TEXT) for piece in merge_steps(llama, word)[-1].pieces]
    assert [llama.to_id(piece) for piece in pieces if llama.to_id(piece)] == [
        id for id in llama.encode(TEXT) if not llama.pieces[id].startswith("<0x")
    ]


def test_the_word_of_a_token(bert: ForeignTokenizer, t5: ForeignTokenizer, llama: ForeignTokenizer) -> None:
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
