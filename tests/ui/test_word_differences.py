"""Differing words are marked, and no output of a model works as markup."""

from __future__ import annotations

from transformer.predictions.comparison import word_diff
from ui.lab.effects import _around_changes, marked_text
from views.decoding.decoding_sections import marked


def test_words_that_differ_are_marked() -> None:
    assert marked("Le chat dort", "Le chien dort") == "Le :orange[~~chat~~] :blue[**chien**] dort"
    assert marked("Il dort", "Elle dort") == ":orange[~~Il~~] :blue[**Elle**] dort"
    assert marked("Il dort", "Il  dort") == "Il  dort"
    assert marked("Le chat dort.", "chat dort.") == ":orange[~~Le~~] chat dort\\."
    assert marked("Il ne dort pas.", "Il dort.") == "Il :orange[~~ne~~] dort :orange[~~pas~~]\\."
    assert marked("", "<b>") == ":blue[**\\<b\\>**]"


def test_a_word_that_is_gone_stands_apart_from_the_first_word_of_the_new_text() -> None:
    assert marked_text(word_diff("Le chat dort.", "chat dort.")) == ":orange[~~Le~~] chat dort\\."
    assert marked_text(word_diff("Le chat dort.", "Le chat.")) == "Le chat :orange[~~dort~~]\\."
    assert marked_text(word_diff("Le chat", "Un chat")) == ":orange[~~Le~~] :blue[**Un**] chat"


def test_a_long_output_is_cut_to_the_words_around_its_changes() -> None:
    before = "The old man who lives near the river told us a long story about his brother."
    after = before.replace("told", "tells")
    cut = marked_text(_around_changes(word_diff(before, after)))
    assert cut == "… near the river :orange[~~told~~] :blue[**tells**] us a long …"
    short = word_diff("He told us.", "He tells us.")
    assert marked_text(_around_changes(short)) == marked_text(short)
