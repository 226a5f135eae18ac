"""Words that differ are marked, and nothing that a model wrote works as markup."""

from __future__ import annotations

from views.decoding.word_differences import marked


def test_words_that_differ_are_marked() -> None:
    assert marked("Le chat dort", "Le chien dort") == "Le :orange[~~chat~~] :blue[**chien**] dort"
    assert marked("Il dort", "Elle dort") == ":orange[~~Il~~] :blue[**Elle**] dort"
    assert marked("Il dort", "Il  dort") == "Il  dort"
    assert marked("", "<b>") == ":blue[**\\<b\\>**]"
