"""Joined examples are right in both languages, and the same for the same seed."""

from __future__ import annotations

import pytest

from transformer.training.joined_pairs import joined_pairs

PAIRS = [
    ("The cat sleeps.", "Le chat dort."),
    ("I see the cat.", "Je vois le chat."),
    ("He eats with me.", "Il mange avec moi."),
    ("Tom knows he sleeps.", "Tom sait qu'il dort."),
    ("Tom says I sleep.", "Tom dit que je dors."),
    ("Is he here?", "Est-il ici ?"),
]


def test_sentences_are_joined_with_small_letters_and_elision() -> None:
    joined = joined_pairs(PAIRS, 2_000, seed=1)
    assert ("The cat sleeps because he eats with me.", "Le chat dort parce qu'il mange avec moi.") in joined
    assert ("I see the cat, but Tom knows he sleeps.", "Je vois le chat, mais Tom sait qu'il dort.") in joined
    assert ("Tom knows he sleeps and I see the cat.", "Tom sait qu'il dort et je vois le chat.") in joined
    assert ("The cat sleeps. He eats with me.", "Le chat dort. Il mange avec moi.") in joined
    for english, french in joined:
        assert len(english.split()) <= 16
        assert english.endswith(".") and "?" not in english
        assert " i " not in english and " tom " not in french and "parce que il" not in french


def test_the_seed_decides() -> None:
    assert joined_pairs(PAIRS, 50, seed=1) == joined_pairs(PAIRS, 50, seed=1) != joined_pairs(PAIRS, 50, seed=2)


def test_a_corpus_without_short_statements_is_refused() -> None:
    with pytest.raises(ValueError, match="none of the 1 pairs is a statement of 2 to 8 words"):
        joined_pairs([("Is he here?", "Est-il ici ?")], 1, seed=1)
