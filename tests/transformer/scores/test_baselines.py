"""Baselines: guesses, and regression on simple data."""

from __future__ import annotations

import sys

import pytest

from transformer.scores.baselines import (
    bag_of_words_accuracy,
    majority_accuracy,
    share,
    unigram_accuracies,
    word_overlap_accuracy,
)
from transformer.scores.masked_words import HiddenWord, hide_words
from transformer.text.tokenizer import END_ID, START_ID

# ---- the guess at hidden words --------------------------------------------------------------------------------------


def test_the_guess_is_the_most_frequent_word_of_as_many_tokens(tiny_tokenizer) -> None:
    def word(text: str, has_letters: bool = True) -> HiddenWord:
        ids = tiny_tokenizer.encode(text) if has_letters else tiny_tokenizer.encode(text, continues=True)
        return HiddenWord(0, 1, tuple(ids), has_letters)

    train = ["the the sea. the sea. Zq. Zq. Zq. Wv."]
    one, two, other, dot = word("the"), word("Zq"), word("Wv"), word(".", has_letters=False)
    assert len(one.answer) == len(dot.answer) == 1
    assert len(two.answer) == len(other.answer) > 1
    found = unigram_accuracies(tiny_tokenizer, train, [one, two, other, dot])
    assert found["unigram_accuracy"] == pytest.approx(2 / 4), "of one token: the full stop; of several: Zq"
    assert found["unigram_accuracy_letters"] == pytest.approx(2 / 3), "of one token: the; of several: Zq"


def test_the_guess_knows_nothing_of_the_data(tiny_tokenizer) -> None:
    hidden = hide_words(tiny_tokenizer, [[START_ID, *tiny_tokenizer.encode("The cat sat on the mat"), END_ID]])
    assert set(unigram_accuracies(tiny_tokenizer, ["garden, garden, garden, a sea"], hidden).values()) == {0.0}
    assert unigram_accuracies(tiny_tokenizer, ["a"], []) == {"unigram_accuracy": None, "unigram_accuracy_letters": None}


def test_share() -> None:
    assert share([True, False, True, True]) == 0.75
    assert share([]) is None


# ---- the bag of words -----------------------------------------------------------------------------------------------

REVIEWS = [(f"a {word} film {filler}", label) for filler in "abcdefgh" for word, label in (("good", 1), ("bad", 0))]


def test_a_bag_of_words_learns_which_words_matter_and_not_their_order() -> None:
    pytest.importorskip("sklearn")
    assert bag_of_words_accuracy(REVIEWS, [("film good a x", 1), ("BAD BAD film", 0), ("it was so good", 1)]) == 1


def test_the_bag_of_words_is_fitted_to_the_training_file_only() -> None:
    pytest.importorskip("sklearn")
    swapped = [(text, 1 - label) for text, label in REVIEWS]
    assert bag_of_words_accuracy(REVIEWS, REVIEWS) == 1
    assert bag_of_words_accuracy(REVIEWS, swapped) == 0


def test_a_bag_of_words_needs_texts_of_every_class() -> None:
    pytest.importorskip("sklearn")
    with pytest.raises(ValueError, match="a class has 1 training texts; the bag of words needs 5 of each"):
        bag_of_words_accuracy([*REVIEWS, ("so so", 2)], REVIEWS)


def test_a_missing_scikit_learn_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ModuleNotFoundError, match="scikit-learn: pip install -r requirements-train.txt"):
        bag_of_words_accuracy(REVIEWS, REVIEWS)


def test_majority_is_learned_from_the_training_file() -> None:
    assert majority_accuracy([1, 1, 0], [0, 0, 1]) == pytest.approx(1 / 3)


def test_word_overlap_takes_the_threshold_that_fits_training_best() -> None:
    train = [("a b c d", "a b c d", 0), ("a b c d", "a b", 0), ("a b c d", "a", 1), ("a b c", "x", 1)]
    rows = [("The cat sat.", "the CAT, sat!", 0), ("a b c", "a", 0), ("one", "two", 1), ("x y", "x y", 1)]
    # Shared words: 1, 0.5, 0.25 and 0 in training, so the threshold is 0.25; 1, 0.33, 0 and 1 here.
    assert word_overlap_accuracy(train, rows) == 0.75
    assert word_overlap_accuracy([("a", "a", 1), ("a", "b", 0), ("c", "d", 0)], rows) == 0.5, "all are consecutive"
