"""Which words are masked, when one counts as recovered, and the baselines beside the scores."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from transformer.scores.baselines import (
    bag_of_words_accuracy,
    majority_accuracy,
    share,
    unigram_accuracies,
    word_overlap_accuracy,
)
from transformer.scores.masked_words import HiddenWord, hide_words, recovered_words, words_of
from transformer.text.tokenizer import END_ID, MASK_ID, START_ID


def encoded(tokenizer, text: str) -> list[int]:
    return [START_ID, *tokenizer.encode(text), END_ID]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat sat on the mat.", ["The", "cat", "sat", "on", "the", "mat", "."]),
        ("unbelievable", ["unbelievable"]),
        ("I don't know!", ["I", "don't", "know", "!"]),
        ("well-known, aren't they?", ["well", "-", "known", ",", "aren't", "they", "?"]),
        ("a film , wo n't", ["a", "film", ",", "wo", "n't"]),
        ("où est café", ["où", "est", "café"]),
        ("日本", ["日本"]),
        ("in 1930s", ["in", "1930s"]),
    ],
)
def test_words_are_whole_and_punctuation_stands_alone(tiny_tokenizer, text: str, words: list[str]) -> None:
    tokenizer = tiny_tokenizer
    ids = encoded(tokenizer, text)
    found = words_of(tokenizer, ids)
    assert [tokenizer.decode(ids[start:end]) for start, end in found] == words
    assert [id for start, end in found for id in ids[start:end]] == ids[1:-1], "nothing is left out"


def test_words_do_not_reach_over_special_tokens(tiny_tokenizer) -> None:
    cat = tiny_tokenizer.encode("cat")
    assert words_of(tiny_tokenizer, [START_ID, *cat, MASK_ID, *cat[1:], END_ID]) == [
        (1, 1 + len(cat)),
        (2 + len(cat), 1 + 2 * len(cat)),
    ]


def test_fifteen_percent_of_the_words_are_hidden_and_at_least_one(tiny_tokenizer) -> None:
    texts = ["No", "The cat sat on the mat.", " ".join(["sea"] * 40), "The dog sleeps under the table, the table."]
    examples = [encoded(tiny_tokenizer, text) for text in texts]
    hidden = hide_words(tiny_tokenizer, examples)
    assert [sum(word.sentence == index for word in hidden) for index in range(4)] == [1, 1, 6, 2]
    assert len({(word.sentence, word.start) for word in hidden}) == len(hidden), "no word twice"
    for word in hidden:
        ids = examples[word.sentence]
        end = word.start + len(word.answer)
        assert tuple(ids[word.start : end]) == word.answer
        assert (word.start, end) in words_of(tiny_tokenizer, ids)
    assert hide_words(tiny_tokenizer, examples) == hidden, "the same choice every time"
    assert hide_words(tiny_tokenizer, examples, seed=1) != hidden


def test_every_place_of_a_sentence_is_chosen_now_and_then(tiny_tokenizer) -> None:
    examples = [encoded(tiny_tokenizer, "The cat sat on the mat.")] * 100
    hidden = hide_words(tiny_tokenizer, examples)
    assert {word.start for word in hidden} == {start for start, _ in words_of(tiny_tokenizer, examples[0])}
    assert {word.has_letters for word in hidden if word.answer != hidden_full_stop(tiny_tokenizer)} == {True}
    assert {word.has_letters for word in hidden if word.answer == hidden_full_stop(tiny_tokenizer)} == {False}


def hidden_full_stop(tokenizer) -> tuple[int, ...]:
    return tuple(tokenizer.encode(".", continues=True))


def test_a_word_is_recovered_when_all_its_tokens_are(tiny_checkpoint) -> None:
    """Every word counts for the model's own predictions; none counts if its last token is different."""
    checkpoint = tiny_checkpoint("bert")
    texts = ["The cat sat on the mat.", "No", "The dog sleeps under the table in the evening.", "unbelievable"] * 3
    examples = [encoded(checkpoint.tokenizer, text) for text in texts]
    hidden = hide_words(checkpoint.tokenizer, examples)
    assert {len(word.answer) > 1 for word in hidden} == {True, False}
    guessed, half_guessed = [], []
    for word in hidden:
        ids = list(examples[word.sentence])
        for other in hidden:
            if other.sentence == word.sentence:
                ids[other.start : other.start + len(other.answer)] = [MASK_ID] * len(other.answer)
        with torch.inference_mode():
            best = checkpoint.model(torch.tensor([ids]))[0].argmax(dim=-1).tolist()
        answer = tuple(best[word.start : word.start + len(word.answer)])
        guessed.append(replace(word, answer=answer))
        half_guessed.append(replace(word, answer=(*answer[:-1], answer[-1] + 1)))
    for batch_tokens in (1, 40, 1000):
        assert recovered_words(checkpoint.model, examples, guessed, batch_tokens) == [True] * len(hidden)
        assert recovered_words(checkpoint.model, examples, half_guessed, batch_tokens) == [False] * len(hidden)


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


def test_majority_is_learned_from_the_training_file() -> None:
    assert majority_accuracy([("a", 1), ("b", 1), ("c", 0)], [("d", 0), ("e", 0), ("f", 1)]) == pytest.approx(1 / 3)


def test_word_overlap_takes_the_threshold_that_fits_training_best() -> None:
    train = [("a b c d", "a b c d", 0), ("a b c d", "a b", 0), ("a b c d", "a", 1), ("a b c", "x", 1)]
    rows = [("The cat sat.", "the CAT, sat!", 0), ("a b c", "a", 0), ("one", "two", 1), ("x y", "x y", 1)]
    # Shared words: 1, 0.5, 0.25 and 0 in training, so the threshold is 0.25; 1, 0.33, 0 and 1 here.
    assert word_overlap_accuracy(train, rows) == 0.75
    assert word_overlap_accuracy([("a", "a", 1), ("a", "b", 0), ("c", "d", 0)], rows) == 0.5, "all are consecutive"
