"""Address, browser history and controls agree: leaving a page makes one entry, and Back returns to it.

Actions have a person's pace, because the browser may learn of the last change only after a fast click.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from _pytest.mark import ParameterSet
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import eventually, place_box, settle
from tests.browser.hand import Hand
from tests.browser.seen import change_every_control, seen
from tests.browser.test_links import difference
from tests.nights import by_day
from tests.pages.test_shared_links import MORE_VIEWS, VIEW, VIEWS, left_in

pytestmark = pytest.mark.browser
OWN = "/attention?sentence=My+dog+is+big.&layer=1&head=1&stack=decoder&kind=cross"


def entry(page: Page) -> str:
    """Return the name of the current entry of the browser's history."""
    return page.evaluate("navigation.currentEntry.key")


def entries_since(page: Page, before: str) -> int:
    """Return how many entries were added since; ``history.length`` is limited to 50."""
    return page.evaluate(
        "key => navigation.currentEntry.index - navigation.entries().findIndex((one) => one.key === key)", before
    )


def turn_to(page: Page, hand: Hand, title: str) -> None:
    """Open a page by the row of pages, with the mouse."""
    hand.click(page.get_by_test_id("stTopNavLink").filter(has=page.get_by_text(title, exact=True)))
    expect(page.get_by_role("heading", name=title, exact=True, level=1)).to_be_visible()
    settle(page)


def back(page: Page, *, steps: int = -1) -> None:
    left = entry(page)
    page.evaluate("steps => history.go(steps)", steps)
    page.wait_for_function("left => navigation.currentEntry.key !== left", arg=left)
    settle(page)


def switch(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key} input[type=checkbox]")


def at_rest(page: Page) -> dict:
    """Return the visible content once it is stable, because a table draws its cells after the script ends."""
    shown = None
    while shown != (shown := seen(page)):
        page.wait_for_timeout(1500)
    return shown


def said(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


@pytest.mark.nightly  # every run changes all controls of a page, leaves it and goes back, below
def test_a_setting_that_was_changed_before_leaving_is_there_on_return(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}{OWN}")
    hand, key = Hand(page), "attention_predicted_cross"
    hand.click(page.locator(".st-key-attention-more button"))
    expect(switch(page, key)).to_be_checked()
    hand.click(page.locator(f".st-key-{key} label"))
    settle(page)
    page.keyboard.press("Escape")
    left, before = page.url, entry(page)
    assert said(page)[key] == ["false"] and said(page)["sentence"] == ["My dog is big."]
    turn_to(page, hand, "Heads")
    assert entries_since(page, before) == 1, "one entry for one page"
    assert said(page)["sentence"] == ["My dog is big."] and key not in said(page)
    back(page)
    assert page.url == left
    hand.click(page.locator(".st-key-attention-more button"))
    expect(switch(page, key)).not_to_be_checked()
    expect(page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value("My dog is big.")


def test_decoding_that_is_opened_again_makes_one_entry(app: str, visit: Callable[..., Page]) -> None:
    """The drawing sent Python the step at which it began, and this made a second entry."""
    page = visit(f"{app}{OWN}")
    hand = Hand(page)
    for title in ("Decoding", "Heads", "Decoding"):
        before = entry(page)
        turn_to(page, hand, title)
        page.wait_for_timeout(1500)  # the drawing tells where the reader rests after 0.8 s
        assert entries_since(page, before) == 1 and "step" not in said(page)
    page.keyboard.press("ArrowRight")
    assert eventually(page, lambda: "step" in said(page), True)


# React draws in tasks of its own, which a busy browser starts late: none starts until they are released.
_HOLD_REACT = """() => {
    const post = MessagePort.prototype.postMessage, held = [];
    MessagePort.prototype.postMessage = function (...message) { held.push(() => post.apply(this, message)); };
    window.letReactDraw = () => {
        MessagePort.prototype.postMessage = post;
        held.forEach((one) => one());
    };
}"""
_ALL_HEARD = "() => window.heardAt > window.askedAt && performance.now() - window.heardAt > 1000"


def link_to_heads(page: Page) -> Locator:
    return page.get_by_test_id("stTopNavLink").filter(has=page.get_by_text("Heads", exact=True))


def link_onward(page: Page) -> Locator:
    return page.locator(".st-key-onward").get_by_role("link", name="Heads")


def button_of_a_cell(page: Page) -> Locator:
    return page.locator(".st-key-cell-heads button")


def open_heads_late(page: Page, hand: Hand, link: Locator) -> None:
    """Click a link to Heads whose final address arrives before React draws the page."""
    page.evaluate(_HOLD_REACT)
    hand.click(link)
    page.wait_for_function(_ALL_HEARD, polling=50)
    page.evaluate("window.letReactDraw()")
    expect(page.get_by_role("heading", name="Heads", exact=True, level=1)).to_be_visible()
    settle(page)


# By day a button, after which Python switches the page; a link is clicked as late in the test of a half-typed sentence.
@pytest.mark.parametrize(
    "way", by_day([link_to_heads, link_onward, button_of_a_cell], ["button_of_a_cell"], id_of="__name__")
)
def test_a_page_that_is_drawn_late_makes_one_entry(
    app: str, visit: Callable[..., Page], way: Callable[[Page], Locator]
) -> None:
    """The final address arrives before Streamlit has switched pages, which happens when React draws."""
    page = visit(f"{app}{OWN}&attention_key=1")
    hand, left, before = Hand(page), page.url, entry(page)
    expect(way(page)).to_be_visible()
    open_heads_late(page, hand, way(page))
    assert entries_since(page, before) == 1
    assert urlsplit(page.url).path == "/heads" and said(page)["sentence"] == ["My dog is big."]
    back(page)
    assert page.url == left


def test_back_in_the_moment_of_a_click_on_a_page(app: str, visit: Callable[..., Page]) -> None:
    """The server may have started the clicked page; the address is that of the page that is visible."""
    page = visit(f"{app}{OWN}")
    left = page.url
    turn_to(page, Hand(page), "Heads")
    link = page.get_by_test_id("stTopNavLink").filter(has=page.get_by_text("Tokens", exact=True))
    link.evaluate("node => { node.click(); history.back(); }")
    expect(page.get_by_role("heading", name="Attention", exact=True, level=1)).to_be_visible()
    settle(page)
    assert page.url == left


def test_a_page_that_opens_before_a_sentence_is_answered_has_it(app: str, visit: Callable[..., Page]) -> None:
    """The page is one entry, and the sentences that are typed one after the other are another."""
    page = visit(f"{app}/tokens?sentence=My+dog+is+big.")
    hand, box, before = Hand(page), page.get_by_role("textbox", name="Sentence", exact=True), entry(page)
    hand.write(box, "My cat is big.")
    open_heads_late(page, hand, link_to_heads(page))
    assert eventually(page, lambda: said(page)["sentence"], ["My cat is big."])
    assert entries_since(page, before) == 2 and urlsplit(page.url).path == "/heads"
    hand.write(box, "My hen is big.")
    page.keyboard.press("Enter")
    assert eventually(page, lambda: said(page)["sentence"], ["My hen is big."])
    assert entries_since(page, before) == 2


def test_a_sentence_that_is_typed_after_back_makes_an_entry(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}{OWN}")
    hand, box, before = Hand(page), page.get_by_role("textbox", name="Sentence", exact=True), entry(page)
    for sentence in ("My cat is", "My hen is"):  # half typed: the cursor stays in the box
        hand.write(box, sentence)
        assert eventually(page, lambda sentence=sentence: said(page)["sentence"], [sentence])
        settle(page)
        assert entries_since(page, before) == 1
        back(page)
    assert entry(page) == before and said(page)["sentence"] == ["My dog is big."]


def test_what_is_chosen_after_enter_makes_an_entry(app: str, visit: Callable[..., Page]) -> None:
    """Enter waited for an answer that had already come, so the choice replaced the sentence."""
    page = visit(f"{app}{OWN}")
    hand, before = Hand(page), entry(page)
    hand.write(page.get_by_role("textbox", name="Sentence", exact=True), "My cat is big.")
    assert eventually(page, lambda: said(page)["sentence"], ["My cat is big."])
    settle(page)
    page.keyboard.press("Enter")
    hand.click(place_box(page, "Head"))
    hand.click(page.get_by_role("option", name="Head 0", exact=True))
    assert eventually(page, lambda: said(page).get("head", ["0"]), ["0"])
    settle(page)
    assert entries_since(page, before) == 2


def test_the_address_of_a_page_is_there_before_it_is_drawn(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}{OWN}")
    for title, path in (("Overview", "/"), ("Tokens", "/tokens")):
        page.evaluate(_HOLD_REACT)
        page.get_by_test_id("stTopNavLink").filter(has=page.get_by_text(title, exact=True)).click()
        page.wait_for_function(_ALL_HEARD, polling=50)
        assert urlsplit(page.url).path == path and "opening" not in said(page)
        page.evaluate("window.letReactDraw()")
        settle(page)


# The page that a reader opens; it computes little.
ELSEWHERE = {"en": ("Tokens", "Overview"), "fr": ("Jetons", "Vue d’ensemble")}
BY_DAY = {("decoding", 1)}  # without a browser, tests/pages/test_shared_links.py changes the controls of every page


def views() -> list[ParameterSet]:
    """One view in every run; all views of all pages in nightly runs."""
    return [
        pytest.param(name, extra, id=f"{name}-{number}", marks=() if (name, number) in BY_DAY else pytest.mark.nightly)
        for name, several in VIEWS.items()
        for number, extra in enumerate((*several, *MORE_VIEWS.get(name, ())))
    ]


@pytest.mark.parametrize(("name", "extra"), views())
def test_every_control_keeps_its_value_wherever_the_reader_goes(
    app: str, visit: Callable[..., Page], name: str, extra: dict
) -> None:
    """Change, leave, Back, Forward, reload and a new tab give the same view, with one entry per page."""
    page = visit(f"{app}/{'' if name == 'overview' else name}?{urlencode({**VIEW, **extra}, doseq=True)}")
    change_every_control(page, without=left_in(extra))
    hand, left, before, shown = Hand(page), page.url, entry(page), at_rest(page)
    turn_to(page, hand, ELSEWHERE[extra.get("language", "en")][name == "tokens"])
    assert entries_since(page, before) == 1, "one entry for one page"

    def is_as_it_was(what: str, tab: Page = page) -> None:
        assert tab.url == left, what
        same = eventually(tab, lambda: seen(tab) == shown, True)
        assert same, f"{what}\n{difference(shown, seen(tab))}"

    elsewhere = page.url
    back(page)
    is_as_it_was("after Back")
    back(page, steps=1)
    assert page.url == elsewhere
    back(page)
    is_as_it_was("after Forward and Back")
    page.reload()
    settle(page)
    is_as_it_was("after a reload")
    is_as_it_was("in a new tab", visit(left))


def test_a_page_remembers_what_was_chosen_on_it(app: str, visit: Callable[..., Page]) -> None:
    """A reader who returns by the row of pages instead of Back."""
    page = visit(f"{app}{OWN}&attention_show=lines")
    left, hand, before = said(page), Hand(page), entry(page)
    turn_to(page, hand, "Heads")
    turn_to(page, hand, "Attention")
    assert said(page) == left and entries_since(page, before) == 2
