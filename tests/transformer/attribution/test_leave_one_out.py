"""Leave-one-out equals a run without the word."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.attribution.leave_one_out import leave_one_out
from transformer.text.word_spans import words_of


def test_words_keep_their_pieces_and_punctuation_stands_alone(tiny_tokenizer):
    def words(text):
        tokens = tiny_tokenizer.sequence([1, *tiny_tokenizer.encode(text), 2])
        found = words_of(tokens)
        covered = [position for word in found for position in range(word.start, word.end)]
        assert covered == list(range(1, len(tokens) - 1))  # every token of the text belongs to exactly one word
        return [word.text for word in found]

    assert words("Unbelievable, isn't it?") == ["Unbelievable", ",", "isn't", "it", "?"]
    assert words("good 😀!")[0] == "good"
    assert "😀" in "".join(words("good 😀!"))
    assert words("one\ntwo")[-1] == "two"
    assert words("one \n ")[1:] == ["·⏎", "·"]
    assert words("a <b>")[1:] == ["<", "b", ">"]


def test_contributions_equal_single_runs(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    sentence = "The old man told us a long story"
    found = leave_one_out(checkpoint, sentence)
    assert [word.text for word in found.words] == sentence.split()
    assert found.without.shape == (8, 2)
    for index, word in enumerate(found.words):
        rest = " ".join(w.text for w in found.words if w is not word)
        logits = transformer.trace(checkpoint, rest).values("classifier.logits").astype(np.float64)
        alone = np.exp(logits) / np.exp(logits).sum()
        assert found.without[index] == pytest.approx(alone, abs=1e-5)
        assert found.contributions[index] == pytest.approx(found.probabilities - alone, abs=1e-5)
    assert np.abs(found.contributions).max() > 1e-4
    effects = found.contributions[:, found.predicted]
    assert found.decisive == (effects.argmax() if effects.max() > 0 else None)


def test_padding_changes_nothing(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    plain = leave_one_out(checkpoint, "It is raining.")
    padded = leave_one_out(checkpoint, "It is raining.", pads=5)
    assert np.allclose(plain.contributions, padded.contributions, atol=1e-5)


def test_one_word_can_be_left_out(tiny_checkpoint):
    found = leave_one_out(tiny_checkpoint("sentiment"), "raining")
    assert len(found.words) == 1 and np.isfinite(found.without).all()


def test_a_model_without_classes_is_refused(tiny_checkpoint):
    with pytest.raises(ValueError, match="tiny-bert is not a classifier"):
        leave_one_out(tiny_checkpoint("bert"), "The cat sat.")
