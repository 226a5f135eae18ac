"""Address, browser history and controls agree: leaving a page makes one entry, and Back returns to it.

Actions have a person's pace, because the browser may learn of the last change only after a fast click.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import (
    asked,
    choose_place,
    eventually,
    go,
    is_open,
    key,
    link_to,
    open_page,
    path,
    place_box,
    sentence_box,
    settle,
    title_of,
)
from tests.browser.drawing import Drawing
from tests.browser.hand import Hand

pytestmark = pytest.mark.browser
OWN = "attention?sentence=My+dog+is+big.&layer=1&head=1&stack=decoder&kind=cross"
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
# What a reader sees of a page: its texts, Plotly's numbers, the pixels of our drawings, and the state of each control.
_SEEN = """() => {
  const found = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return void found.push(node.textContent.trim());
    if (node.matches?.("style, script") || node.checkVisibility?.() === false) return;
    if (node.matches?.(".js-plotly-plot"))
      return void found.push(JSON.stringify(node.data.map(({ x, y, z }) => [x, y, z].map((one) => one && [...one]))));
    if (node.matches?.("canvas[data-geometry]")) found.push(node.toDataURL());
    if (node.matches?.("input, textarea")) found.push(`${node.checked} ${node.value}`);
    for (const child of [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes]) walk(child);
  };
  walk(document.querySelector("[data-testid=stMain]"));
  return found.filter(Boolean);
}"""


def entry(page: Page) -> str:
    """Return the name of the current entry of the browser's history."""
    return page.evaluate("navigation.currentEntry.key")


def entries_since(page: Page, before: str) -> int:
    """Return how many entries were added since; ``history.length`` is limited to 50."""
    return page.evaluate(
        "key => navigation.currentEntry.index - navigation.entries().findIndex((one) => one.key === key)", before
    )


def turn_to(page: Page, hand: Hand, name: str) -> None:
    """Open a page by the row of pages, with the mouse."""
    hand.click(link_to(page, title_of(name)))
    is_open(page, title_of(name))


def back(page: Page, *, steps: int = -1) -> None:
    left = entry(page)
    page.evaluate("steps => history.go(steps)", steps)
    page.wait_for_function("left => navigation.currentEntry.key !== left", arg=left)
    settle(page)


def seen(page: Page) -> list[str]:
    """Return what is visible once it is stable, because a figure may be drawn after the script ends."""
    page.mouse.move(2, 2)
    before = None
    while before != (shown := page.evaluate(_SEEN)):
        before = shown
        page.wait_for_timeout(500)
    return shown


def test_back_forward_reload_a_new_tab_and_a_shared_link_show_the_same(
    visit: Callable[..., Page],
) -> None:
    """Of every page and all its controls, without a browser: tests/pages/test_shared_links.py."""
    page = visit(OWN)
    hand, before = Hand(page), entry(page)
    Drawing(page).click(Drawing(page).cell(1, 2))  # a cell, a choice and a switch of the page
    settle(page)
    key(page, "attention-more").get_by_role("button").click()
    page.get_by_role("switch").first.focus()
    page.keyboard.press("Space")
    settle(page)
    page.keyboard.press("Escape")
    settle(page)
    left, own, shown = page.url, entry(page), seen(page)
    assert asked(page).keys() > {"token", "attention_key"} and entries_since(page, before) >= 1
    turn_to(page, hand, "tokens")
    assert entries_since(page, own) == 1, "one entry for one page"
    elsewhere = page.url

    def is_as_it_was() -> None:
        assert page.url == left
        assert eventually(page, lambda: seen(page) == shown)

    back(page)
    is_as_it_was()
    back(page, steps=1)
    assert page.url == elsewhere
    back(page)
    is_as_it_was()
    page.reload()
    settle(page)
    is_as_it_was()
    turn_to(page, hand, "tokens")
    turn_to(page, hand, "attention")  # by the row of pages
    is_as_it_was()

    key(page, "share").get_by_role("button").first.click()
    key(page, "share-note").get_by_role("textbox").fill("Look at <b>this</b> & *that*: why?")
    page.keyboard.press("Control+Enter")
    code = page.get_by_test_id("stCode").filter(has_text="fingerprint=")
    expect(code.first).to_contain_text("note=")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    key(page, "copy-link").get_by_role("button").click()
    copied = "() => navigator.clipboard.readText()"
    assert eventually(page, lambda: page.evaluate(copied), "".join(code.first.inner_text().split()))
    other = visit(page.evaluate(copied))
    note = other.get_by_test_id("stAlert")
    expect(note).to_contain_text("Look at <b>this</b> & *that*: why?")
    assert eventually(other, lambda: len(set(shown) - set(seen(other))), 0)


def test_back_and_forward_bring_back_every_choice_and_decoding_makes_one_entry(visit: Callable[..., Page]) -> None:
    page = visit("attention?checkpoint=en-fr&sentence=My+dog+is+big.&layer=0&head=0")
    start = asked(page)
    choose_place(page, "Layer", 1)
    choose_place(page, "Head", 1)
    open_page(page, title_of("tokens"))
    for steps, layer, head in ((-1, "1", "1"), (-1, "1", "0"), (-1, "0", "0"), (1, "1", "0")):
        back(page, steps=steps)
        assert path(page) == "/attention"
        assert (asked(page).get("layer", "0"), asked(page).get("head", "0")) == (layer, head)
        expect(place_box(page, "Layer")).to_have_value(f"Layer {layer}")
        expect(place_box(page, "Head")).to_have_value(f"Head {head}")
    back(page)
    assert asked(page) == start

    before = entry(page)
    turn_to(page, Hand(page), "decoding")
    page.wait_for_timeout(1200)  # the drawing tells where the reader rests after 0.8 s
    assert entries_since(page, before) == 1 and "step" not in asked(page)  # the step at which it began made another one
    page.keyboard.press("ArrowRight")
    assert eventually(page, lambda: "step" in asked(page))


def link_to_heads(page: Page) -> Locator:
    return link_to(page, title_of("heads"))


def button_of_a_cell(page: Page) -> Locator:
    return key(page, "cell-heads").get_by_role("button")


def open_heads_late(page: Page, hand: Hand, link: Locator) -> None:
    """Click what leads to Heads; the final address arrives before React draws the page."""
    expect(link).to_be_visible()
    page.evaluate(_HOLD_REACT)
    hand.click(link)
    page.wait_for_function(_ALL_HEARD, polling=50)
    page.evaluate("window.letReactDraw()")
    is_open(page, title_of("heads"))


def test_a_page_that_is_drawn_late_makes_one_entry_and_has_the_sentence(visit: Callable[..., Page]) -> None:
    """By a button, after which Python switches the page, and by a link before a sentence is answered."""
    page = visit(f"{OWN}&attention_key=1")
    hand, left, before = Hand(page), page.url, entry(page)
    open_heads_late(page, hand, button_of_a_cell(page))
    assert entries_since(page, before) == 1
    assert path(page) == "/heads" and asked(page)["sentence"] == "My dog is big."
    back(page)
    assert page.url == left
    turn_to(page, hand, "heads")  # Back in the moment of a click on a page, which the server may have started
    link_to(page, title_of("tokens")).evaluate("node => { node.click(); history.back(); }")
    is_open(page, title_of("attention"))
    assert page.url == left

    go(page, "tokens?sentence=My+dog+is+big.")
    before = entry(page)
    hand.write(sentence_box(page), "My cat is big.")
    open_heads_late(page, hand, link_to_heads(page))
    assert eventually(page, lambda: asked(page)["sentence"], "My cat is big.")
    assert entries_since(page, before) == 2 and path(page) == "/heads"

    page.evaluate(_HOLD_REACT)  # the address of a page is there before the page
    link_to(page, title_of("attention")).click()
    page.wait_for_function(_ALL_HEARD, polling=50)
    assert path(page) == "/attention" and "opening" not in asked(page)
    page.evaluate("window.letReactDraw()")
    settle(page)


def test_what_is_typed_or_chosen_after_another_step_makes_an_entry(visit: Callable[..., Page]) -> None:
    page = visit(OWN)
    hand, box, before = Hand(page), sentence_box(page), entry(page)
    for sentence in ("My cat is", "My hen is"):  # half typed: the cursor stays in the box
        hand.write(box, sentence)
        assert eventually(page, lambda sentence=sentence: asked(page)["sentence"], sentence)
        settle(page)
        assert entries_since(page, before) == 1
        back(page)
    assert entry(page) == before and asked(page)["sentence"] == "My dog is big."

    hand.write(box, "My cat is big.")
    assert eventually(page, lambda: asked(page)["sentence"], "My cat is big.")
    settle(page)
    page.keyboard.press("Enter")  # which waited for an answer that had already come
    choose_place(page, "Head", 0)
    assert asked(page).get("head", "0") == "0" and entries_since(page, before) == 2


def test_a_link_that_is_typed_by_hand(visit: Callable[..., Page], app: str) -> None:
    """The page's own address replaces it; values that do not exist: tests/pages/test_links.py."""
    page = visit("overview?layer=1&edit=zero:encoder.0.self.1&edit=zero:encoder.1.self.0")
    is_open(page, title_of("overview"))
    assert path(page) == "/" and urlsplit(page.url).query.count("edit=") == 2
    go(page, "paths?layer=1&head=1")  # a former page
    is_open(page, title_of("compare"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert asked(page) == {"layer": "1", "head": "1", "compare_more": "vectors"}

    missing = page.context.new_page()  # without ``visit``, because the console reports the missing page, too
    missing.goto(f"{app}/no_such_page?layer=1")
    settle(missing)
    expect(missing.get_by_role("dialog")).to_be_visible()
    missing.keyboard.press("Escape")
    is_open(missing, title_of("overview"))
    missing.close()
