"""A shared link opened by another visitor shows the same view, with every control changed."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import eventually, settle
from tests.browser.seen import change_every_control, seen
from tests.nights import by_day
from tests.pages.test_links import GONE, SAID_OF_GONE
from tests.pages.test_shared_links import VIEW, VIEWS, left_in

pytestmark = pytest.mark.browser
NOTE = "Look at <b>this</b> & *that*: why?"
ICON = "sticky_note_2"
# Nightly runs test each kind of control and figure, other runs one. A view of each page without a browser:
# tests/pages/test_shared_links.py.
DRAWN = by_day([("surgery", 0), ("training", 0), ("overview", 0), ("decoding", 1), ("lens", 1)], [("surgery", 0)])


def shared_link(page: Page, note: str) -> str:
    page.locator(".st-key-share").get_by_role("button").first.click()
    box = page.get_by_role("textbox", name="Note")
    box.fill(note)
    box.press("Control+Enter")
    code = page.get_by_test_id("stCode").filter(has_text="fingerprint=").first  # the second is for a frame
    expect(code).to_contain_text("note=")
    link = code.inner_text()
    page.keyboard.press("Escape")
    expect(code).to_have_count(0)
    return "".join(link.split())


def difference(first: dict, second: dict) -> str:
    """Describe the differences in a few lines."""
    text = difflib.unified_diff(first["text"], second["text"], lineterm="", n=0)
    lines = [line[:200] for line in text if line[0] in "+-"][2:20]
    for name in ("figures", "pictures"):
        if first[name] != second[name]:
            lines.append(f"{name}: {len(first[name])} and {len(second[name])}, not the same")
    return "\n".join([*lines, *(f"{k}: {v!r} and {second['controls'].get(k)!r}" for k, v in first["controls"].items()
                                if second["controls"].get(k) != v)])  # fmt: skip


def without_note(found: dict) -> dict:
    return {**found, "text": [line for line in found["text"] if line not in (NOTE, ICON)]}


@pytest.mark.parametrize("drawn", DRAWN)
def test_a_link_shows_the_same_picture_to_somebody_else(
    app: str, visit: Callable[..., Page], drawn: tuple[str, int]
) -> None:
    name, view = drawn
    extra = VIEWS[name][view]
    first = visit(f"{app}/{'' if name == 'overview' else name}?{urlencode({**VIEW, **extra}, doseq=True)}")
    change_every_control(first, without=left_in(extra))
    link = shared_link(first, NOTE)
    settle(first)
    second = visit(link)
    expect(second.get_by_test_id("stAlert").filter(has_text=NOTE)).to_be_visible()
    # A figure may still be drawing its last frame.
    same = eventually(second, lambda: without_note(seen(second)) == seen(first), True)
    assert same, f"{link}\n{difference(seen(first), without_note(seen(second)))}"
    assert seen(first)["text"]


@pytest.mark.parametrize("name", by_day(["surgery", "", "lessons"], ["surgery"]))
def test_a_link_to_what_is_no_longer_there_says_so(app: str, visit: Callable[..., Page], name: str) -> None:
    """For all pages, see tests/pages/test_links.py."""
    page = visit(f"{app}/{name}?{urlencode(GONE)}")
    main = page.get_by_test_id("stMain")
    for sentence in SAID_OF_GONE:
        expect(main).to_contain_text(sentence, use_inner_text=True)
    assert page.get_by_test_id("stAlertContentError").count() == 0
    if name == "surgery":
        expect(main).to_contain_text(GONE["edit"], use_inner_text=True)
        assert "edit=" not in page.url
    left = parse_qs(urlsplit(page.url).query)
    assert not {"checkpoint", "language", "lesson"} & left.keys() and left["layer"] == ["1"]


def test_the_first_page_is_found_by_its_name_too(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/overview?layer=1&edit=zero:encoder.0.self.1&edit=zero:encoder.1.self.0")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Encoder, Layer 1")).to_have_attribute("aria-pressed", "true")
    assert urlsplit(page.url).path == "/"
    assert parse_qs(urlsplit(page.url).query)["edit"] == ["zero:encoder.0.self.1", "zero:encoder.1.self.0"]


def test_a_page_that_is_not_there(app: str, chromium: Browser) -> None:
    """The first page opens at the requested location and says that the page is missing.

    This does not use ``visit``, because the browser's console reports the missing page, too.
    """
    page = chromium.new_page()
    page.goto(f"{app}/no_such_page?layer=1")
    settle(page)
    expect(page.get_by_role("dialog", name="Page not found")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    expect(page.get_by_role("button", name="Encoder, Layer 1")).to_have_attribute("aria-pressed", "true")
    page.close()
