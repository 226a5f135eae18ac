"""Baselines: probabilities and sums computed by hand, guesses, and regression on simple data."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from transformer.scores.baselines import (
    bag_of_words_accuracy,
    majority_accuracy,
    ngram_perplexities,
    share,
    unigram_accuracies,
    word_overlap_accuracy,
)
from transformer.scores.kneser_ney import KneserNey, discounts
from transformer.scores.masked_words import HiddenWord, hide_words
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, START_ID

# ---- n-gram models --------------------------------------------------------------------------------------------------

VOCABULARY = range(10, 40)


def random_sequences(*, n_sequences: int = 300) -> list[list[int]]:
    """Return tokens that each depend on the previous one; 30 is rare and 31 … 39 never occur."""
    chance = np.random.default_rng(0)
    sequences = []
    for _ in range(n_sequences):
        tokens = [int(chance.integers(10, 30))]
        while len(tokens) < 8:
            tokens.append(10 + (tokens[-1] * 7 + int(chance.geometric(0.4))) % 20)
        sequences.append(tokens)
    sequences[0].append(30)
    return sequences


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_sum_to_one_after_any_context(order: int) -> None:
    sequences = random_sequences()
    model = KneserNey(sequences, VOCABULARY, order)
    seen, unseen, half_seen = sequences[5][2:5], [38, 39, 38], [39, *sequences[5][3:5]]
    beginning = [START_ID] * 3
    for context in ([], seen, unseen, half_seen, beginning, seen[-1:]):
        assert sum(model.probability(token, context) for token in VOCABULARY) == pytest.approx(1, abs=1e-12)
        assert all(model.probability(token, context) > 0 for token in VOCABULARY), "no token is impossible"
    assert model.probability(PAD_ID, seen) == 0


def test_a_bigram_probability_by_hand() -> None:
    """a b </s> twice and c b </s> once, with discounts 0.5, 1, 1.5 (too few counts to estimate them)."""
    a, b, c, end = 10, 11, 12, 13
    model = KneserNey([[a, b, end], [a, b, end], [c, b, end]], [a, b, c, end], order=2)
    # Unigrams count the different tokens before: a after <s>; c after <s>; b after a and c; </s> after b. Five in all.
    down = (0.5 + 0.5 + 1 + 0.5) / 5
    unigram = {a: 0.5 / 5, b: 1 / 5, c: 0.5 / 5, end: 0.5 / 5}
    unigram = {token: kept + down / 4 for token, kept in unigram.items()}
    assert [model.probability(token) for token in (a, b, c, end)] == pytest.approx(list(unigram.values()))
    # After a: b twice, so 1 of 2 goes to shorter contexts. After <s>: a twice, c once, so 1 + 0.5 of 3.
    assert model.probability(b, [a]) == pytest.approx((2 - 1) / 2 + 1 / 2 * unigram[b])
    assert model.probability(c, [a]) == pytest.approx(1 / 2 * unigram[c])
    assert model.probability(c, [START_ID]) == pytest.approx(0.5 / 3 + 1.5 / 3 * unigram[c])
    assert model.probability(b, [99]) == pytest.approx(unigram[b]), "an unseen context says nothing"
    expected = math.log(model.probability(c, [START_ID])) + math.log(model.probability(b, [c]))
    assert model.log_probability([c, b]) == pytest.approx(expected)


def test_a_trigram_model_uses_both_tokens_before() -> None:
    x, y, a, b = 10, 11, 12, 13
    model = KneserNey([[x, a, x], [y, a, y]] * 20, [x, y, a, b], order=3)
    assert model.probability(x, [x, a]) > 0.9
    assert model.probability(x, [y, a]) < 0.1
    assert model.probability(x, [b, a]) == pytest.approx(model.probability(y, [b, a])), "and only what it has seen"
    assert model.probability(x, [b, b, b, x, a]) == model.probability(x, [x, a]), "no more than two"


def test_discounts_are_those_of_chen_and_goodman() -> None:
    counts = [1] * 100 + [2] * 40 + [3] * 20 + [4] * 12 + [5] * 50
    y = 100 / (100 + 2 * 40)
    expected = (0, 1 - 2 * y * 40 / 100, 2 - 3 * y * 20 / 40, 3 - 4 * y * 12 / 20)
    assert discounts(counts) == pytest.approx(expected)
    assert discounts([1, 1, 2, 3, 9]) == (0, 0.5, 1, 1.5), "no n-gram occurs four times: nothing to estimate from"
    assert discounts([1] * 9 + [2] * 2 + [3] * 5 + [4]) == (0, 0.5, 1, 1.5), "a discount may not be negative"


@pytest.mark.parametrize(
    ("sequences", "order", "message"),
    [
        ([[10]], 0, "order is 0; an n-gram has at least 1 token"),
        ([[], []], 2, "there is nothing to count"),
        ([[10, 99]], 2, "token 99 occurs in the sequences but not in the vocabulary"),
    ],
)
def test_an_ngram_model_that_makes_no_sense_is_refused(sequences, order, message) -> None:
    with pytest.raises(ValueError, match=message):
        KneserNey(sequences, VOCABULARY, order)


def test_ngram_perplexities_per_word_by_hand(tiny_tokenizer) -> None:
    train = ["The cat sat.", "The dog sat.", "It is raining."] * 5
    texts = ["The cat sat.", "It is odd."]
    found = ngram_perplexities(tiny_tokenizer, train, texts)
    vocabulary = set(range(tiny_tokenizer.vocabulary_size)) - {PAD_ID, START_ID, MASK_ID}
    for name, order in (("unigram", 1), ("trigram", 3)):
        model = KneserNey([[*tiny_tokenizer.encode(text), END_ID] for text in train], vocabulary, order)
        log_p = sum(model.log_probability([*tiny_tokenizer.encode(text), END_ID]) for text in texts)
        assert found[f"{name}_perplexity_per_word"] == pytest.approx(math.exp(-log_p / 6))
    assert 1 < found["trigram_perplexity_per_word"] < found["unigram_perplexity_per_word"]


def test_text_that_was_never_seen_has_a_finite_perplexity(tiny_tokenizer) -> None:
    found = ngram_perplexities(tiny_tokenizer, ["The cat sat."], ["Ωμέγα 😀"])
    assert all(map(math.isfinite, found.values()))


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
