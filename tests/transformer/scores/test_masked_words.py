"""Which words are masked, and when one counts as recovered."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from transformer.scores.masked_words import hide_words, recovered_words, words_of
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
