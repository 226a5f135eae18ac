"""Texts are complete and filled in, and no text of a reader or a model becomes markup."""

from __future__ import annotations

from html import unescape

import numpy as np
import pytest

from charts.documents.document_parts import markdown_html
from transformer.predictions.comparison import word_diff
from ui.words import texts
from ui.words.texts import (
    Marked,
    PageText,
    as_plain,
    code,
    filled,
    listed,
    named_word,
    page_text,
    quoted_word,
    use_language,
)
from ui.words.word_diff import around_changes, marked_text

GOOD = {"title": "T", "question": "Q?", "look_for": ["a", "b", "c"], "more": "m"}
HOSTILE = "**b** [x](http://evil.example) <b> $x$ `c` {share} :material/home: www.evil.example"


@pytest.mark.parametrize("broken", [{"title": ""}, {"question": None}, {"look_for": ["a", "b"]}, {"look_for": "abc"}])
def test_an_incomplete_page_text_is_refused_by_name(broken: dict) -> None:
    with pytest.raises(ValueError, match=rf"views/sample/en.toml .*{next(iter(broken))}"):
        PageText("sample", {**GOOD, **broken})
    with pytest.raises(KeyError, match="'les'"):
        PageText("sample", GOOD)["les"]
    assert all(page_text(path.parent.name).title for path in texts.ROOT.glob("views/*/en.toml"))


def test_a_language_ends_with_its_block_and_a_punctuation_mark_has_a_name_in_it() -> None:
    before = texts.language()
    said = [quoted_word(label) for label in ("·cat", "mère", ".", "·-")]
    assert said == ["‘cat’", "‘mère’", "the full stop", "the hyphen"]
    assert [named_word(label) for label in ("·cat", "<mask>", ".")] == ["cat", "<mask>", "the full stop"]
    with use_language("fr" if before == "en" else "en"):
        assert texts.language() != before and quoted_word(".") == "«\u00a0.\u00a0»"
    assert texts.language() == before


@pytest.mark.parametrize("nasty", [
    "**b**", "<b>", ":red[x]", ":material/home:", "https://x.y", "w@x.y", "www.x", "<- x", "$x^2$", "# x", "[a](b)",
    "a_b_", "`c`",
])  # fmt: skip
def test_typed_text_keeps_its_characters_and_loses_its_power(nasty: str) -> None:
    plain = as_plain(nasty).replace(":color[]{}", "")  # this part is invisible (tests/browser/test_elements.py)
    assert plain.replace("\\", "") == nasty
    assert not [place for place, one in enumerate(plain) if one in "*_`[]()<>#$:{}~^" and plain[place - 1] != "\\"]


@pytest.mark.parametrize("typed", [
    "https://x.y", "www.x.y", "a@x.y", ":material/home:", "a -> b", "a\n\nb", "&#10; :color[]{}", "**b**",
    *(f"{space}x{space}" for space in " \t\u00a0\u202f\u3000"),  # beside which asterisks would be shown
])  # fmt: skip
def test_a_document_shows_typed_text_as_its_characters(typed: str) -> None:
    plain = as_plain(typed)
    assert unescape(markdown_html(plain)) == typed and plain == plain.strip()


def test_a_document_shows_tags_as_their_characters() -> None:
    assert markdown_html("<b> & `<i>`") == "&lt;b&gt; &amp; <code>&lt;i&gt;</code>"


# ---- texts that are filled in ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "values", "markdown", "plain"), [
    ("say {token}.", {"token": HOSTILE}, f"say {as_plain(HOSTILE)}.", f"say {HOSTILE}."),
    ("{command}", {"command": Marked("`a`")}, "`a`", "`a`"),
    ("{name:code}", {"name": "a`**b**"}, "`aˋ**b**`", "a`**b**"),
    ("{names:code}", {"names": ["a", "b"]}, "`a` `b`", "a b"),
    (r"$\frac{a}{b}_{i,j}$ sentence{n:+}{p:%}", {"n": -0.5, "p": 0.5}, r"$\frac{a}{b}_{i,j}$ sentence−0.550%", None),
    (
        "{share:%} {count} {score} {share:3} {count:tokens} {one:tokens}",
        {"share": np.float32(0.4321), "count": np.int64(6000), "score": 0.12345, "one": 1},
        "43% 6,000 0.123 0.432 6,000 tokens 1 token", None,
    ),
])  # fmt: skip
def test_a_value_is_written_as_the_text_says_and_escaped_unless_the_app_wrote_it(
    text: str, values: dict, markdown: str, plain: str | None
) -> None:
    assert filled(text, values, markdown=True) == markdown
    assert filled(text, values, markdown=False) == (markdown if plain is None else plain)


def test_a_list_is_marked_and_a_field_without_a_value_or_way_is_an_error() -> None:
    assert listed([Marked("`a`"), "*b*"]) == r"`a`, \*b\*" and isinstance(listed([]), Marked)
    assert isinstance(code("a"), Marked)
    for text, values in (("{nothing}", {}), ("{count:noses}", {"count": 2})):
        with pytest.raises(KeyError):
            filled(text, values, markdown=True)


@pytest.mark.parametrize(("before", "after", "marked"), [
    ("Le chat dort", "Le chien dort", "Le :orange[~~chat~~] :blue[**chien**] dort"),
    ("Le chat dort.", "chat dort.", r":orange[~~Le~~] chat dort\."),
    ("Le chat dort.", "Le chat.", r"Le chat :orange[~~dort~~]\."),
    ("", "<b>", r":blue[**\<b\>**]"),
])  # fmt: skip
def test_words_that_differ_are_marked(before: str, after: str, marked: str) -> None:
    pieces = word_diff(before, after)
    assert marked_text(pieces) == marked == marked_text(around_changes(pieces)), "short ones are whole"
    long = word_diff(f"{'word ' * 20}told {'word ' * 20}", f"{'word ' * 20}tells {'word ' * 20}")
    assert marked_text(around_changes(long)) == "… word word word :orange[~~told~~] :blue[**tells**] word word word …"
