"""Merges step by step end with the tokenizer's own result; other ways to cut a text; words of tokens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import TINY_SENTENCES
from tests.transformer.text.foreign_folders import byte_level, opened, unigram, with_byte_fallback, word_piece, write
from transformer import Tokenizer
from transformer.text.byte_pair_merges import merge_steps
from transformer.text.guests.tokenizer import GuestTokenizer
from transformer.text.tokenizations import NO_ID, characters, with_merges, word_of, words

TEXT = "The cats sat – on the mât 😀!"
FOLDERS = {
    "gpt2": lambda: byte_level(special=("<|endoftext|>",)),
    "bert": word_piece,
    "t5": lambda: unigram(("<pad>", "</s>", "<unk>"), "<unk>"),
    "llama": with_byte_fallback,
}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], GuestTokenizer]:
    def get(kind: str) -> GuestTokenizer:
        settings = {"tokenizer_class": "LlamaTokenizer"} if kind == "llama" else None
        return opened(write(tmp_path_factory.mktemp(kind), {"model_type": kind}, settings, FOLDERS[kind]()))

    return get


# ---- merges ---------------------------------------------------------------------------------------------------------


def check_merges(tokenizer: Tokenizer, text: str) -> None:
    found = [piece for word in tokenizer.words(text) for piece in merge_steps(tokenizer, word)[-1].pieces]
    assert found == [tokenizer.pieces[id] for id in tokenizer.encode(text)]


def test_every_word_of_the_training_sentences(tiny_tokenizer: Tokenizer) -> None:
    for sentence in TINY_SENTENCES:
        check_merges(tiny_tokenizer, sentence)


@given(
    text=st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=40),
        st.text("theaoinlrs é'.", max_size=40),  # letters that do merge, repeated, overlapping
    )
)
def test_every_word_of_any_text(text: str, tiny_tokenizer: Tokenizer) -> None:
    check_merges(tiny_tokenizer, text)


def test_merges_of_a_third_party_tokenizer_are_its_tokens(foreign: Callable) -> None:
    llama = foreign("llama")
    text = "The unbelievable cat, sat on 64 mats; école!"
    pieces = [piece for word in llama.words(text) for piece in merge_steps(llama, word)[-1].pieces]
    assert [llama.to_id(piece) for piece in pieces if llama.to_id(piece)] == [
        id for id in llama.encode(text) if not llama.pieces[id].startswith("<0x")
    ]


def test_each_step_applies_the_earliest_learned_merge_everywhere(tiny_tokenizer: Tokenizer) -> None:
    for word in (*tiny_tokenizer.words("thethe"), *tiny_tokenizer.words(TINY_SENTENCES[2]), "x"):
        steps = merge_steps(tiny_tokenizer, word)
        assert (steps[0].pieces, steps[0].rank, steps[0].merged) == (tuple(word), None, None)
        for before, after in zip(steps, steps[1:], strict=False):
            assert "".join(after.pieces) == word
            assert tiny_tokenizer.merges[after.rank] == after.merged
            pairs = set(zip(before.pieces, before.pieces[1:], strict=False))
            assert after.rank == min(rank for rank, pair in enumerate(tiny_tokenizer.merges) if pair in pairs)
            assert after.merged not in zip(after.pieces, after.pieces[1:], strict=False)
        ranks = [step.rank for step in steps[1:]]
        assert ranks == sorted(ranks), "a merge is learned after its parts"
        assert len(steps) > 2 or word != "Ġthethe"


def test_fewer_merges_are_a_smaller_vocabulary() -> None:
    texts = list(TINY_SENTENCES)
    large, small = Tokenizer.train(texts, 380), Tokenizer.train(texts, 300)
    assert large.merges[:40] == small.merges
    for word in large.words("The children are reading"):
        pretended = merge_steps(large, word, n_merges=40)[-1].pieces
        assert pretended == merge_steps(small, word)[-1].pieces
    assert merge_steps(large, "Ġthe", n_merges=0)[-1].pieces == ("Ġ", "t", "h", "e")


@pytest.mark.parametrize(
    ("piece", "shown"), [("Ġthe", "·the"), ("Ã©", "é"), ("Ã", "⟨C3⟩"), ("Ċ", "⏎"), ("</s>", "</s>")]
)
def test_pieces_are_readable(piece: str, shown: str, tiny_tokenizer: Tokenizer) -> None:
    assert tiny_tokenizer.readable(piece) == shown


# ---- other cuts -----------------------------------------------------------------------------------------------------


def test_all_merges_are_the_tokenizer_itself_and_fewer_never_give_fewer_tokens(tiny_tokenizer: Tokenizer) -> None:
    cuts = [with_merges(tiny_tokenizer, TEXT, n) for n in (0, 20, 60, None)]
    assert list(cuts[-1].ids) == tiny_tokenizer.encode(TEXT)
    raw = f" {TEXT}".encode()
    assert [tiny_tokenizer.token_bytes[id] for id in cuts[0].ids] == [bytes([byte]) for byte in raw]
    counts = [len(cut) for cut in cuts]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]
    assert all(tiny_tokenizer.decode(cut.ids) == TEXT for cut in cuts)
    with pytest.raises(ValueError, match="n_merges is -1"):
        with_merges(tiny_tokenizer, "The", -1)


def test_characters_and_words_give_the_text_back_and_say_what_is_unknown(tiny_tokenizer: Tokenizer) -> None:
    for cut in (characters, words):
        assert cut(tiny_tokenizer, TEXT).text == TEXT
    by_display = {token.display: token.id for token in characters(tiny_tokenizer, TEXT)}
    assert by_display["s"] == tiny_tokenizer.to_id("s")
    assert by_display["😀"] == NO_ID
    assert [token.display for token in words(tiny_tokenizer, "The mat.")] == ["·The", "·mat", "."]
    assert [len(cut(tiny_tokenizer, "")) for cut in (with_merges, characters, words)] == [0, 0, 0]


# ---- words of tokens ------------------------------------------------------------------------------------------------


def test_every_piece_knows_its_word(tiny_tokenizer: Tokenizer) -> None:
    ids = [1, *tiny_tokenizer.encode("The umbrellas 😀 sat."), 2]
    sequence = tiny_tokenizer.sequence(ids)
    found = [word_of(tiny_tokenizer, sequence, index) for index in range(len(ids))]
    assert found[0] is None and found[-1] is None
    assert list(dict.fromkeys(found[1:-1])) == tiny_tokenizer.words("The umbrellas 😀 sat.")
    for word, token in zip(found[1:-1], sequence.tokens[1:-1], strict=True):
        assert tiny_tokenizer.pieces[token.id] in word


def test_the_first_word_begins_without_a_space(foreign: Callable) -> None:
    gpt2 = foreign("gpt2")
    begins = [token.starts_word for token in gpt2.sequence(gpt2.encode("unbelievable cats"))]
    assert begins[0] and sum(begins) == 2
    assert gpt2.sequence([0, *gpt2.encode("unbelievable")])[1].starts_word


@pytest.mark.parametrize(("kind", "cat"), [("bert", "cat"), ("t5", "▁cat"), ("llama", "▁cat")])
def test_the_word_of_a_token(kind: str, cat: str, foreign: Callable) -> None:
    tokenizer = foreign(kind)
    sequence = tokenizer.sequence([*tokenizer.before, *tokenizer.encode("The cat sat"), *tokenizer.after])
    found = [word_of(tokenizer, sequence, index) for index in range(len(sequence))]
    assert cat in found
    assert all(word is None for word, token in zip(found, sequence, strict=True) if token.special)
    cut = words(tokenizer, "The cat xqz")
    assert [token.display.lower() for token in cut] == ["·the", "·cat", "·xqz"]
    assert cut[2].id == NO_ID
    assert "".join(token.text for token in characters(tokenizer, "a b")).strip() == "a b"
