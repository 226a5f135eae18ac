"""Every element shows third-party text as exactly its characters; no part becomes a link or an icon."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from playwright.sync_api import expect

from tests.browser.conftest import settle
from tests.browser.seats import Seats
from tests.nights import by_day

# Everything that Markdown, GFM and Streamlit 1.67 read as syntax, alone and adjacent to anything else.
SYNTAX = (
    *("https://example.com", "http://", "HTTPS://", "ftp://x.example", "www.example.com", "WWW.", "a@b.example", "@"),
    *("mailto:a@b.example", "xmpp:a@b.example/c", "//", ".com", ":smile:", ":+1:", ":material/home:", ":streamlit:"),
    *(":material_home:", ":red[", ":red-badge[x]", ":small[x]", ":color[x]{foreground=red}", ":help[x]", "::x", ":::"),
    *("$x$", "$$x$$", "$5 $6", "\\(x\\)", "<b>", "</b>", "<a href=x>", "<!-- x -->", "<https://example.com>", "&amp;"),
    *("&#10;", "[^1]", "[^1]: x", "[x](https://example.com)", "[x]: https://example.com", "![x](y.png)", "|a|b|"),
    *(
        "|-|-|",
        "~~x~~",
        "~",
        "**",
        "__",
        "_x_",
        "`",
        "``",
        "```",
        "- [ ] x",
        "- ",
        "+ ",
        "1. ",
        "1) ",
        "# ",
        "===",
        "---",
    ),
    *(
        "->",
        "<-",
        "<->",
        "--",
        ">=",
        "<=",
        "~=",
        "...",
        "(c)",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        "    ",
        "\\",
        "\\\n",
        "^",
        "{x}",
    ),
)
CHARACTERS = some.characters(exclude_categories=("Cc", "Cs", "Co", "Cn"), exclude_characters="\ufeff")
TEXTS = (
    some.lists(
        some.sampled_from(SYNTAX) | some.sampled_from((" ", "x", "é")) | some.text(CHARACTERS, max_size=4),
        min_size=1,
        max_size=6,
    )
    .map("".join)
    .filter(lambda text: text.strip() != "")
)
# Each element with its text, and the tags inside it that syntax would create.
_READ = """() => [...document.querySelectorAll("[class*=st-key-shown-] [data-testid=stMarkdownContainer]")].map(
    (box) => [Number(box.closest("[class*=st-key-shown-]").className.match(/st-key-shown-(\\d+)/)[1]), box.textContent,
        [...box.querySelectorAll("*")].map((tag) => tag.tagName
            + (tag.getAttribute("role") === "img" ? " icon" : "") + (tag.matches(".katex") ? " formula" : ""))])"""
_OURS = {"P", "SPAN", "STRONG", "H3", "UL", "LI", "DIV"}  # tags that the harness itself makes; a span is harmless


def in_one_line(text: str) -> str:
    """Return the text as HTML displays white space."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def plain_texts(start_app: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return start_app(tmp_path_factory.mktemp("none"), script=Path(__file__).with_name("plain_text_harness.py"))


def wrong(seats: Seats, address: str, texts: list[str], folder: Path) -> list[tuple[str, str, list[str]]]:
    """Return (text, displayed text, inner tags) of every element that does not show its text unchanged."""
    path = folder / "texts.json"
    path.write_text(json.dumps(texts), encoding="utf-8")
    with seats.taken() as seat:
        seat.page.goto(f"{address}/?file={quote(str(path))}")
        settle(seat.page)
        found = seat.page.evaluate(_READ)
    assert len(found) >= 18 * len(texts)
    return [
        (texts[number], shown, tags)
        for number, shown, tags in found
        if in_one_line(shown) != in_one_line(texts[number]) or not set(tags) <= _OURS
    ]


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([2, 1], [2]), ids=lambda every: {2: "in turn", 1: "all"}[every])
def test_each_piece_of_syntax_is_shown_as_its_characters(
    plain_texts: str, seats: Seats, tmp_path: Path, every: int
) -> None:
    """Alone, between words and twice: every second text by day, so that each piece is tried once or twice."""
    texts = [text for piece in SYNTAX if piece.strip() for text in (piece, f"x {piece} y", f"{piece}{piece}")]
    texts = texts[::every]
    faults = [
        fault
        for start in range(0, len(texts), 40)
        for fault in wrong(seats, plain_texts, texts[start : start + 40], tmp_path)
    ]
    assert faults == []


@pytest.mark.slow
@pytest.mark.parametrize("pages", by_day([2, 8], [2]))
def test_any_text_is_shown_as_its_characters(
    plain_texts: str, seats: Seats, tmp_path_factory: pytest.TempPathFactory, pages: int
) -> None:
    @settings(
        max_examples=pages,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(some.lists(TEXTS, min_size=10, max_size=25))
    def show(texts: list[str]) -> None:
        assert wrong(seats, plain_texts, texts, tmp_path_factory.mktemp("texts")) == []

    show()


def test_a_tooltip_and_a_toast_show_an_address_as_text(plain_texts: str, seats: Seats, tmp_path: Path) -> None:
    text = "see https://example.com www.example.com a@b.example :material/home: -> x"
    (tmp_path / "texts.json").write_text(json.dumps([text]), encoding="utf-8")
    with seats.taken() as seat:
        seat.page.goto(f"{plain_texts}/?file={quote(str(tmp_path / 'texts.json'))}")
        settle(seat.page)
        expect(seat.page.get_by_test_id("stToast")).to_contain_text(text)
        seat.page.locator(".st-key-hover button").first.hover()
        expect(seat.page.get_by_test_id("stTooltipContent")).to_have_text(text)
        assert seat.page.locator("a[href*=example]").count() == 0
