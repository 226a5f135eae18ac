"""The merges that are shown step by step end with the tokenizer's own result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import TINY_SENTENCES
from transformer import Tokenizer
from transformer.text.byte_pair_merges import merge_steps, readable


def pieces_of_every_word(tokenizer: Tokenizer, text: str) -> list[str]:
    return [piece for word in tokenizer.words(text) for piece in merge_steps(tokenizer, word)[-1].pieces]


def test_every_word_of_the_training_sentences(tiny_tokenizer: Tokenizer) -> None:
    for sentence in TINY_SENTENCES:
        own = [tiny_tokenizer.pieces[id] for id in tiny_tokenizer.encode(sentence)]
        assert pieces_of_every_word(tiny_tokenizer, sentence) == own


@given(
    text=st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=40),
        st.text("theaoinlrs é'.", max_size=40),  # letters that do merge, repeated, overlapping
    )
)
def test_every_word_of_any_text(text: str, tiny_tokenizer: Tokenizer) -> None:
    own = [tiny_tokenizer.pieces[id] for id in tiny_tokenizer.encode(text)]
    assert pieces_of_every_word(tiny_tokenizer, text) == own


def test_each_step_applies_the_earliest_learned_merge_everywhere(tiny_tokenizer: Tokenizer) -> None:
    (word,) = tiny_tokenizer.words("thethe")
    steps = merge_steps(tiny_tokenizer, word)
    assert (steps[0].pieces, steps[0].rank, steps[0].merged) == (tuple(word), None, None)
    for before, after in zip(steps, steps[1:], strict=False):
        assert "".join(after.pieces) == word
        assert tiny_tokenizer.merges[after.rank] == after.merged
        pairs = set(zip(before.pieces, before.pieces[1:], strict=False))
        ranks = [rank for rank, pair in enumerate(tiny_tokenizer.merges) if pair in pairs]
        assert after.rank == min(ranks)
        assert after.merged not in zip(after.pieces, after.pieces[1:], strict=False)
    assert len(steps) > 2


def test_ranks_rise_because_a_merge_is_learned_after_its_parts(tiny_tokenizer: Tokenizer) -> None:
    for sentence in TINY_SENTENCES[:6]:
        for word in tiny_tokenizer.words(sentence):
            ranks = [step.rank for step in merge_steps(tiny_tokenizer, word)[1:]]
            assert ranks == sorted(ranks)


def test_fewer_merges_are_a_smaller_vocabulary() -> None:
    texts = list(TINY_SENTENCES)
    large, small = Tokenizer.train(texts, 380), Tokenizer.train(texts, 300)
    assert large.merges[:40] == small.merges
    for word in large.words("The children are reading"):
        pretended = merge_steps(large, word, n_merges=40)[-1].pieces
        assert pretended == merge_steps(small, word)[-1].pieces
    assert merge_steps(large, "Ġthe", n_merges=0)[-1].pieces == ("Ġ", "t", "h", "e")


def test_a_word_of_one_byte_needs_no_merge(tiny_tokenizer: Tokenizer) -> None:
    (step,) = merge_steps(tiny_tokenizer, "x")
    assert step.pieces == ("x",)


@pytest.mark.parametrize(
    ("piece", "shown"), [("Ġthe", "·the"), ("Ã©", "é"), ("Ã", "⟨C3⟩"), ("Ċ", "⏎"), ("</s>", "</s>")]
)
def test_pieces_are_readable(piece: str, shown: str) -> None:
    assert readable(piece) == shown
