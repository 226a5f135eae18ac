"""Texts are complete, found by name, and typed text never becomes markup."""

from __future__ import annotations

from html import unescape

import pytest

from charts.documents.document_parts import markdown_html
from ui.words import texts
from ui.words.texts import PageText, as_plain, common, examples, model_sentences, page_text, quoted_word, use_language

PAGES = sorted(path.parent.name for path in (texts.ROOT / "views").glob("*/en.toml"))
GOOD = {"title": "T", "question": "Q?", "look_for": ["a", "b", "c"], "more": "m"}


@pytest.mark.parametrize("name", PAGES)
def test_every_page_text_is_complete(name: str) -> None:
    assert page_text(name).title


@pytest.mark.parametrize("broken", [{"title": ""}, {"question": None}, {"look_for": ["a", "b"]}, {"look_for": "abc"}])
def test_an_incomplete_page_text_is_refused_by_name(broken: dict) -> None:
    with pytest.raises(ValueError, match=rf"views/sample/en.toml needs .*{next(iter(broken))}"):
        PageText("sample", {**GOOD, **broken})


def test_a_punctuation_mark_has_a_name_and_a_word_quotation_marks() -> None:
    assert [quoted_word(label) for label in ("·cat", "mère", ".", "·-", "word")] == [
        "‘cat’", "‘mère’", "the full stop", "the hyphen", "‘word’",
    ]  # fmt: skip
    with use_language("fr"):
        assert quoted_word(".") == "«\u00a0.\u00a0»"


def test_a_missing_paragraph_is_named_with_those_there_are() -> None:
    with pytest.raises(KeyError, match="no text 'les'; it has look_for, more, question, title"):
        PageText("sample", GOOD)["les"]


def test_examples_show_what_they_promise() -> None:
    found = {example.label: example for example in examples()}
    assert model_sentences()["default"] == next(iter(found.values())).sentence == "The cat sat on the mat."
    assert {"Repeated", "Negation", "Agreement", "Pronoun", "Long", "Alphabet", "Emoji"} <= set(found)
    assert {"Blank", "Review"} <= set(found)
    assert len(found) == len(examples())
    words = found["Repeated"].sentence.lower().rstrip(".").split()
    assert len(set(words)) < len(words)
    assert any("Ѐ" <= character <= "ӿ" for character in found["Alphabet"].sentence)
    assert any(ord(character) > 0xFFFF for character in found["Emoji"].sentence)
    assert all(example.shows.endswith(".") for example in found.values())


def test_values_are_filled_into_common_texts() -> None:
    assert "/some/where" in common("problem.no_checkpoints", folder="/some/where")


@pytest.mark.parametrize(
    "nasty",
    [
        "**b**",
        "<b>",
        ":red[x]",
        ":material/home:",
        "https://x.y",
        "w@x.y",
        "www.x",
        "<- x",
        "$x^2$",
        "# x",
        "[a](b)",
        "a_b_",
        "`c`",
    ],
)
def test_typed_text_keeps_its_characters_and_loses_its_power(nasty: str) -> None:
    plain = as_plain(nasty).replace(":color[]{}", "")  # this part is invisible (tests/browser/test_plain_text.py)
    assert plain.replace("\\", "") == nasty
    assert not any(
        character in "*_`[]()<>#$:{}~^" and plain[index - 1] != "\\" for index, character in enumerate(plain)
    )


@pytest.mark.parametrize("space", [" ", "\t", "\u00a0", "\u202f", "\u3000"])
def test_bold_text_may_begin_and_end_with_any_space(space: str) -> None:
    """Two asterisks beside a space, or beside a no-break space, would be shown."""
    assert as_plain(f"{space}x{space}") == f"&#{ord(space)};x&#{ord(space)};"


@pytest.mark.parametrize(
    "typed",
    [
        "https://x.y",
        "www.x.y",
        "a@x.y",
        ":material/home:",
        "a -> b",
        " a ",
        "\u00a0a\u3000",
        "a\n\nb",
        "&#10; :color[]{}",
        "**b**",
    ],
)
def test_a_document_shows_typed_text_as_its_characters(typed: str) -> None:
    assert unescape(markdown_html(as_plain(typed))) == typed


def test_a_language_ends_with_its_block() -> None:
    before = texts.language()
    with use_language("fr" if before == "en" else "en"):
        assert texts.language() != before
    assert texts.language() == before


def test_a_document_shows_tags_as_their_characters() -> None:
    assert markdown_html("<b> & `<i>`") == "&lt;b&gt; &amp; <code>&lt;i&gt;</code>"
