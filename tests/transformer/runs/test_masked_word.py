"""The masked word of a typed sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import transformer
from transformer.predictions.answer_probabilities import blanks
from transformer.runs.inputs import source_tensor
from transformer.runs.masked_word import NONE, hidden_id, masked_word, masks_a_word, words_in

SENTENCE = "The old man told us a story."


def test_the_last_longer_word_that_is_one_token_is_masked(tiny_checkpoint: Callable) -> None:
    bert = tiny_checkpoint("bert")
    masked = masked_word(bert, SENTENCE)
    assert (masked.number, masked.text, masked.sentence) == (2, "man", "The old ___ told us a story.")
    whole, read = (source_tensor(bert, text)[0].tolist() for text in (SENTENCE, masked.sentence))
    assert [after for before, after in zip(whole, read, strict=True) if before != after] == [bert.special.mask]
    assert masked_word(bert, "to us") is None


def test_the_masked_word_is_known_by_its_id_if_it_is_one_token(tiny_checkpoint: Callable) -> None:
    bert = tiny_checkpoint("bert")
    masked = masked_word(bert, SENTENCE)
    trace = transformer.trace(bert, masked.sentence)
    (blank,) = blanks(trace)
    assert hidden_id(trace, SENTENCE) == source_tensor(bert, SENTENCE)[0, blank]
    assert hidden_id(trace, masked.sentence) is None
    assert hidden_id(trace, SENTENCE.replace("man", "grandmotherly man")) is None


def test_any_word_can_be_chosen_or_none(tiny_checkpoint: Callable) -> None:
    bert = tiny_checkpoint("bert")
    assert masked_word(bert, "The old man’s dog.", "2").sentence == "The old ___ dog."
    assert masked_word(bert, SENTENCE, NONE) is None
    assert masked_word(bert, SENTENCE, "99") == masked_word(bert, SENTENCE), "an unknown word is the default"
    assert words_in("The old man’s dog.") == ("The", "old", "man’s", "dog")


@pytest.mark.parametrize(
    ("checkpoint", "sentence"),
    [("bert", "The ___ man."), ("bert", "The [MASK] man."), ("gpt", SENTENCE), ("sentiment", SENTENCE)],
)
def test_nothing_is_masked_where_the_model_reads_a_text_as_it_is(
    tiny_checkpoint: Callable, checkpoint: str, sentence: str
) -> None:
    loaded = tiny_checkpoint(checkpoint)
    assert not masks_a_word(loaded, sentence) and masked_word(loaded, sentence, "1") is None
