"""Every element shows third-party text as exactly its characters; no part becomes a link or an icon."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from playwright.sync_api import Page, expect

from tests.browser.conftest import SETTINGS, key, settle
from tests.browser.seats import Seats
from tests.harness.app_server import AppServer

pytestmark = pytest.mark.browser
# Everything that Markdown, GFM and Streamlit read as syntax, alone and adjacent to anything else.
_WITHOUT_SPACES = r"""
https://example.com http:// HTTPS:// ftp://x.example www.example.com WWW. a@b.example @ mailto:a@b.example // .com
xmpp:a@b.example/c :smile: :+1: :material/home: :streamlit: :material_home: :red[ :red-badge[x] :small[x] ::x :::
:color[x]{foreground=red} :help[x] $x$ $$x$$ \(x\) <b> </b> <https://example.com> &amp; &#10; [^1]
[x](https://example.com) ![x](y.png) |a|b| |-|-| ~~x~~ ~ ** __ _x_ ` `` ``` === --- -> <- <-> -- >= <= ~= ... (c)
\ ^ {x}
"""
_WITH_SPACES = (
    "$5 $6",
    "<a href=x>",
    "<!-- x -->",
    "[^1]: x",
    "[x]: https://example.com",
    "- [ ] x",
    "- ",
    "1. ",
    "# ",
)
SYNTAX = (*_WITHOUT_SPACES.split(), *_WITH_SPACES, "# ", "1) ", "\n\n", "\t", "    ", "\\\n")
CHARACTERS = some.characters(exclude_categories=("Cc", "Cs", "Co", "Cn"), exclude_characters="\ufeff")
PIECES = some.sampled_from(SYNTAX) | some.sampled_from((" ", "x", "é")) | some.text(CHARACTERS, max_size=4)
TEXTS = some.lists(PIECES, min_size=1, max_size=6).map("".join).filter(str.strip)
# Each element with its text, and the tags inside it that syntax would create.
_READ = """() => [...document.querySelectorAll("[class*=st-key-shown-] [data-testid=stMarkdownContainer]")].map(
    (box) => [Number(box.closest("[class*=st-key-shown-]").className.match(/st-key-shown-(\\d+)/)[1]), box.textContent,
        [...box.querySelectorAll("*")].map((tag) => tag.tagName
            + (tag.getAttribute("role") === "img" ? " icon" : "") + (tag.matches(".katex") ? " formula" : ""))])"""
_OURS = {"P", "SPAN", "STRONG", "H3", "UL", "LI", "DIV"}  # tags that the harness itself makes; a span is harmless
TEXT = "see https://example.com www.example.com a@b.example :material/home: -> x"
HARNESS = Path(__file__).with_name("harness.py")


@pytest.fixture(scope="module")
def harness() -> Iterator[str]:
    with AppServer(script=str(HARNESS), environment=SETTINGS) as server:
        yield server.base


@pytest.fixture
def open_texts(seats: Seats, harness: str, tmp_path: Path) -> Iterator[Callable[[list[str]], Page]]:
    file = tmp_path / "texts.json"
    with seats.taken() as seat:

        def opened(texts: list[str]) -> Page:
            file.write_text(json.dumps(texts), encoding="utf-8")
            seat.page.goto(f"{harness}/?file={quote(str(file))}")
            settle(seat.page)
            assert seat.page.locator("[class*=st-key-shown-]").count() == len(texts)
            return seat.page

        yield opened


def wrong(page: Page, texts: list[str]) -> list[tuple[str, str, list[str]]]:
    """Return (text, displayed text, inner tags) of every element that does not show its text unchanged."""

    def in_one_line(text: str) -> str:
        return " ".join(text.split())  # as HTML displays white space

    return [
        (texts[number], shown, tags)
        for number, shown, tags in page.evaluate(_READ)
        if in_one_line(shown) != in_one_line(texts[number]) or not set(tags) <= _OURS
    ]


@pytest.mark.sample
@pytest.mark.parametrize("start", range(3))
def test_each_piece_of_syntax_is_shown_as_its_characters(open_texts: Callable[[list[str]], Page], start: int) -> None:
    """A third of them, alone, between words or twice, in turn; any mixture of them is tried at night."""
    pieces = [*filter(str.strip, SYNTAX)][start::3]
    texts = [TEXT, *((piece, f"x {piece} y", f"{piece}{piece}")[number % 3] for number, piece in enumerate(pieces))]
    page = open_texts(texts)
    assert wrong(page, texts) == []
    expect(page.get_by_test_id("stToast")).to_contain_text(TEXT)
    page.locator(".st-key-hover button").first.hover()
    expect(page.get_by_test_id("stTooltipContent")).to_have_text(TEXT)
    assert page.locator("a[href*=example]").count() == 0


@pytest.mark.nightly
def test_any_text_is_shown_as_its_characters(open_texts: Callable[[list[str]], Page]) -> None:
    phases = [Phase.explicit, Phase.generate]

    @settings(max_examples=8, deadline=None, phases=phases, suppress_health_check=list(HealthCheck))
    @given(some.lists(TEXTS, min_size=10, max_size=25))
    def show(texts: list[str]) -> None:
        assert wrong(open_texts(texts), texts) == []

    show()


def test_a_figure_that_the_store_has_dropped_is_made_again(visit: Callable[..., Page], harness: str) -> None:
    page = visit(harness)
    for number, switch in enumerate(("more-of-bars", "as-table-bars"), 1):
        expect(key(page, "runs")).to_have_text(f"run {number}")
        key(page, switch).locator("button, label").first.click()
        settle(page)
    expect(key(page, "runs")).to_have_text("run 3")
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
