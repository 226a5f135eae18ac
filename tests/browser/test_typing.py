"""Typed text and the click that follows are never lost, at a person's pace in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import (
    PROJECTOR,
    asked,
    eventually,
    is_kept,
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
from tests.browser.hand import KEY, Hand
from tests.conftest import ROOT
from transformer.files.opening_file import read_opening

pytestmark = pytest.mark.browser
SENTENCES = ("My dog ate my homework.", "We like old songs.", "A bird is in the house.", "Who has the key?")


def option(page: Page, name: str) -> Locator:
    return page.get_by_role("option", name=name, exact=True)


def checkpoint_named(page: Page, hand: Hand, name: str, press: int = 90) -> None:
    hand.click(key(page, "sidebar-checkpoint").get_by_role("combobox"), press=press)
    hand.click(option(page, read_opening(ROOT / "checkpoints" / name).name["en"]))


def a_page(page: Page, hand: Hand, press: int) -> bool:
    hand.click(link_to(page, title_of("heads")), press=press)
    is_open(page, title_of("heads"))
    return path(page) == "/heads"


def a_block_of_the_diagram(page: Page, hand: Hand, press: int) -> bool:
    hand.click(page.locator(".diagram [data-stop='encoder.tokens']"), press=press)
    is_open(page, title_of("tokens"))
    return path(page) == "/tokens"


def a_token(page: Page, hand: Hand, press: int) -> bool:
    """If the strip is redrawn during the mouse move, the token under the mouse is the one that is clicked."""
    tokens = page.locator(".strip button.token")
    hand.reach(tokens.nth(2 if press else 3))
    token = hand.lies_on(tokens)
    hand.press(press)
    settle(page)
    return token is None or asked(page).get("token", "1") == str(token)


def a_layer(page: Page, hand: Hand, press: int) -> bool:
    hand.click(place_box(page, "Layer"), press=press)
    hand.click(option(page, "Layer 1"), press=press)
    settle(page)
    return asked(page)["layer"] == "1"


def a_head(page: Page, hand: Hand, press: int) -> bool:
    hand.click(place_box(page, "Head"), press=press)
    hand.click(option(page, "Head 3"), press=press)
    settle(page)
    return asked(page)["head"] == "3"


def another_checkpoint(page: Page, hand: Hand, press: int) -> bool:
    checkpoint_named(page, hand, "gpt-en", press)
    settle(page)
    return asked(page)["checkpoint"] == "gpt-en"


def another_language(page: Page, hand: Hand, press: int) -> bool:
    radio = key(page, "sidebar-language").get_by_role("radio")
    hand.click(radio.nth(1), press=press)
    expect(page.locator("html")).to_have_attribute("lang", "fr")
    settle(page)
    hand.click(radio.nth(0))
    expect(page.locator("html")).to_have_attribute("lang", "en")
    return "language" not in asked(page)


def a_model_of_images_and_back(page: Page, hand: Hand, press: int) -> bool:
    """A sentence belongs to the reader, and comes back with the first model that reads text."""
    for name in ("vit-digits", "en-fr"):
        checkpoint_named(page, hand, name, press)
        settle(page)
    return True


def another_control(page: Page, hand: Hand, press: int) -> bool:
    hand.click(key(page, "attention_show").get_by_role("radio").nth(1), press=press)
    settle(page)
    return asked(page)["attention_show"] == "lines"


# What is clicked, on which page, how many milliseconds after the last key, and for how long.
GESTURES = [
    (a_page, "tokens", 0, 0),
    (a_page, "attention", 150, 90),
    (a_block_of_the_diagram, "", 0, 90),
    (a_token, "attention", 0, 0),
    (a_token, "attention", 800, 90),
    (a_layer, "attention", 0, 90),
    (a_head, "attention", 450, 0),
    (another_control, "attention", 300, 90),
    (another_checkpoint, "tokens", 150, 90),
    (another_language, "attention", 0, 90),
    (a_model_of_images_and_back, "attention", 0, 90),
    (a_page, "embeddings", 450, 90),
]


@pytest.mark.sample(of=3)
@pytest.mark.parametrize(("gesture", "name", "milliseconds", "press"), GESTURES)
def test_each_of_twelve_gestures_counts_and_the_sentence_is_kept(
    visit: Callable[..., Page], gesture: Callable[[Page, Hand, int], bool], name: str, milliseconds: int, press: int
) -> None:
    page = visit(name, **PROJECTOR)
    hand = Hand(page)
    hand.write(sentence_box(page), SENTENCES[0])
    page.wait_for_timeout(milliseconds)
    assert gesture(page, hand, press), page.url
    is_kept(page, SENTENCES[0])


def test_an_example_replaces_half_a_sentence_and_what_other_boxes_hold_is_kept(visit: Callable[..., Page]) -> None:
    page = visit("attention", **PROJECTOR)
    hand = Hand(page)
    hand.write(sentence_box(page), "Half a sen")
    hand.click(key(page, "sidebar-example").get_by_role("button"))
    hand.click(page.get_by_role("menuitem").nth(1))
    assert eventually(page, lambda: asked(page)["sentence"] == sentence_box(page).input_value() != "Half a sen")

    hand.click(page.get_by_test_id("stSidebar").get_by_test_id("stExpander").locator("summary").first)
    target = key(page, "sidebar-target").get_by_role("textbox")
    settle(page)
    hand.write(target, "Le chat dort 2 fois.")
    a_page(page, hand, 0)
    assert eventually(page, lambda: asked(page).get("target"), "Le chat dort 2 fois.")
    open_page(page, title_of("compare"))
    second = page.get_by_test_id("stMain").get_by_role("textbox").nth(1)
    hand.write(second, SENTENCES[1])
    hand.click(link_to(page, title_of("tokens")), press=0)
    is_open(page, title_of("tokens"))
    open_page(page, title_of("compare"))
    expect(second).to_have_value(SENTENCES[1])


def test_the_page_follows_while_somebody_types_with_one_entry_in_the_history(visit: Callable[..., Page]) -> None:
    """The page follows after a pause, or at once on Enter."""
    page = visit("embeddings", **PROJECTOR)  # whose strip holds the words that are read
    hand = Hand(page)
    hand.write(sentence_box(page), "One bird sings")
    expect(page.locator(".strip .token").filter(has_text="bird")).to_be_visible()
    page.keyboard.type(" and two", delay=KEY)
    expect(page.locator(".strip .token").filter(has_text="two")).to_be_visible()
    page.keyboard.type(" dogs.", delay=KEY)
    page.keyboard.press("Enter")
    is_kept(page, "One bird sings and two dogs.")
    page.go_back()
    settle(page)
    assert "sentence" not in asked(page)
    page.go_forward()
    is_kept(page, "One bird sings and two dogs.")


def back_and_forward(page: Page) -> None:
    for step in (-1, 1):
        page.evaluate("step => void history.go(step)", step)
        page.wait_for_timeout(30)  # in all, less than the server needs


def reload(page: Page) -> None:
    page.reload()


def back_and_reload(page: Page) -> None:
    page.evaluate("history.back()")
    page.wait_for_timeout(30)
    page.reload()


def to_another_site_and_back(page: Page) -> None:
    page.goto("about:blank")
    page.go_back()


@pytest.mark.sample
@pytest.mark.parametrize("leave", [back_and_forward, reload, back_and_reload, to_another_site_and_back])
def test_a_text_that_the_server_has_not_answered_is_kept(
    visit: Callable[..., Page], leave: Callable[[Page], None]
) -> None:
    page = visit("embeddings?sentence=One.", **PROJECTOR)
    open_page(page, title_of("tokens"))
    hand = Hand(page)
    hand.write(sentence_box(page), SENTENCES[0])
    leave(page)
    is_kept(page, SENTENCES[0])
    if leave is back_and_reload:  # back to a sentence that was answered, which stays as it is
        page.go_back()
        settle(page)
        before = asked(page)["sentence"]
        page.reload()
        is_kept(page, before)
        assert before != SENTENCES[0]


@pytest.mark.nightly
@pytest.mark.parametrize("milliseconds", [0, 450])
def test_the_head_that_surgery_offers_is_removed_and_the_typed_sentence_kept(
    visit: Callable[..., Page], milliseconds: int
) -> None:
    """The button is clicked while the card may still show the head of the sentence before."""
    page = visit("surgery?checkpoint=en-fr&sentence=The+old+man+told+us+a+story.", **PROJECTOR)
    hand = Hand(page)
    hand.write(sentence_box(page), SENTENCES[0])
    page.wait_for_timeout(milliseconds)
    hand.click(key(page, "keep-removed").get_by_role("button"))
    expect(page.locator(".st-key-edit-list")).to_be_visible()
    is_kept(page, SENTENCES[0])
