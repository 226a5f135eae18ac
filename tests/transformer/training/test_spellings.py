"""A word in one spelling becomes the word in the other, and frequent words come in both."""

from __future__ import annotations

import pytest

from transformer.training.spellings import frequent_words, other_spelling


@pytest.mark.parametrize(
    ("american", "british"),
    [
        ("My neighbor likes gray.", "My neighbour likes grey."),
        ("Colorful theaters were canceled.", "Colourful theatres were cancelled."),
        ("She realized it.", "She realised it."),
    ],
)
def test_both_directions(american: str, british: str) -> None:
    assert other_spelling(american) == british
    assert other_spelling(british) == american


@pytest.mark.parametrize("text", ["The laboratory in Colorado.", "A humorous moment.", "Nothing changes."])
def test_other_words_stay(text: str) -> None:
    assert other_spelling(text) == text


def test_frequent_words_are_those_after_a_space_in_their_usual_form() -> None:
    texts = ["I'll see the color", "The color of the sea", "Tom sees it"]
    assert frequent_words(texts, 2) == ["the", "color", "colour"]
    assert "ll" not in frequent_words(texts, 20) and "Tom" in frequent_words(texts, 20)
