"""Typed text and the click that follows are never lost, at a person's pace in a real browser."""

from __future__ import annotations

import random
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import ROOT, open_page, place_box, settle
from tests.browser.hand import Hand
from tests.nights import by_day
from transformer.files.opening_file import read_opening

pytestmark = pytest.mark.browser
SENTENCES = ("My dog ate my homework.", "We like old songs.", "A bird is in the house.", "Who has the key?")
PAUSES = (0, 150, 300, 450, 600, 800, 1000, 1500)  # milliseconds between the last key and the mouse move
PAGES = ("Tokens", "Embeddings", "Positions", "Attention", "Heads", "Add & Norm", "Feed-forward", "Decoding")

# Every run tries each kind of click once or twice, at night eight times as often.
OFTEN = pytest.mark.parametrize("times", [1, pytest.param(8, marks=pytest.mark.nightly)])


def sentence_box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Sentence", exact=True)


def asked(page: Page) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}


def is_kept(page: Page, sentence: str) -> None:
    """Check the box, the address and the page: the model has read the text."""
    settle(page)
    expect(sentence_box(page)).to_have_value(sentence)
    assert asked(page).get("sentence") == sentence
    expect(page.get_by_test_id("stException")).to_have_count(0)


def is_open(page: Page, title: str) -> None:
    expect(page.get_by_role("heading", name=title, exact=True, level=1)).to_be_visible()


def link(page: Page, title: str) -> Locator:
    return page.get_by_test_id("stTopNavLink").filter(has_text=title)


def gestures(count: int, seed: int) -> list[tuple[str, int, int]]:
    """Return (sentence, pause, press) triples whose neighbours differ; every second press is instant.

    The seeds are chosen so that the first few triples include the hardest case: no pause and an instantaneous press.
    """
    dice = random.Random(seed)
    return [
        (f"{SENTENCES[n % len(SENTENCES)][:-1]} {n}.", dice.choice(PAUSES), 0 if n % 2 else 90) for n in range(count)
    ]


@pytest.mark.nightly  # every run clicks pages without a pause, in the test below
def test_a_page_that_is_clicked_has_the_sentence(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(shipped, width=1280, height=720)
    hand = Hand(page)
    for n, (sentence, pause, press) in enumerate(gestures(24, seed=15)):
        hand.write(sentence_box(page), sentence)
        page.wait_for_timeout(pause)
        title = PAGES[n % len(PAGES)]
        hand.click(link(page, title), press=press)
        is_open(page, title)
        is_kept(page, sentence)


@pytest.mark.parametrize("press", by_day([0, 90], [0]))  # test_history.py clicks as slowly after typing
def test_back_returns_to_the_sentence_that_was_just_typed(shipped: str, visit: Callable[..., Page], press: int) -> None:
    """The click interrupts the run that would have written the sentence to the address."""
    page = visit(f"{shipped}/tokens", width=1280, height=720)
    hand = Hand(page)
    typed = []
    ways = (("Tokens", "Heads"), ("Heads", "Decoding"), ("Decoding", "Tokens"))
    for title, after in ways if press else ways[:2]:
        typed.append((title, f"My {len(typed) + 3} dogs ate my homework."))
        hand.write(sentence_box(page), typed[-1][1])
        hand.click(link(page, after), press=press)
        is_open(page, after)
        is_kept(page, typed[-1][1])
    for title, sentence in reversed(typed):
        page.go_back()
        is_open(page, title)
        is_kept(page, sentence)
        page.go_back()  # to the page as it was before anything was typed there
        is_open(page, title)
        settle(page)
        assert asked(page).get("sentence") != sentence


@pytest.mark.slow
@OFTEN
def test_a_block_of_the_diagram_that_is_clicked_opens_with_the_sentence(
    shipped: str, visit: Callable[..., Page], times: int
) -> None:
    page = visit(shipped, width=1280, height=720)
    hand = Hand(page)
    blocks = {"Token ids": "Tokens", "Self-attention": "Attention", "Token embedding": "Embeddings"}
    for n, (sentence, pause, press) in enumerate(gestures(times, seed=2)):
        block, title = list(blocks.items())[n % len(blocks)]
        hand.write(sentence_box(page), sentence)
        page.wait_for_timeout(pause)
        hand.click(page.get_by_role("button", name=block).first, press=press)
        is_open(page, title)
        is_kept(page, sentence)
        hand.click(link(page, "Overview"))
        is_open(page, "Overview")


@pytest.mark.slow
@OFTEN
def test_a_token_that_is_clicked_is_followed_in_the_sentence(
    shipped: str, visit: Callable[..., Page], times: int
) -> None:
    """If the strip is redrawn during the mouse move, the token under the mouse is the one that is clicked."""
    page = visit(f"{shipped}/attention", width=1280, height=720)
    hand, followed = Hand(page), 0
    for n, (sentence, pause, press) in enumerate(gestures(2 * times, seed=42)):
        hand.write(sentence_box(page), sentence)
        page.wait_for_timeout(pause)
        tokens = page.locator(".strip button.token")
        hand.reach(tokens.nth(1 + n % 3))
        token = hand.lies_on(tokens)
        hand.press(press)
        is_kept(page, sentence)
        if token is not None:
            assert asked(page).get("token", "1") == str(token)
            followed += 1
    assert followed > times


@pytest.mark.slow
@OFTEN
def test_a_layer_a_head_and_an_example_after_typing(shipped: str, visit: Callable[..., Page], times: int) -> None:
    page = visit(f"{shipped}/attention", width=1280, height=720)
    hand = Hand(page)
    sidebar = page.get_by_test_id("stSidebar")
    for n, (sentence, pause, press) in enumerate(gestures(2 * times, seed=37)):
        hand.write(sentence_box(page), sentence)
        page.wait_for_timeout(pause)
        what, value = ("Layer", str(1 + n // 2 % 2)) if n % 2 else ("Head", str(1 + n % 7))
        hand.click(place_box(page, what), press=press)
        hand.click(page.get_by_role("option", name=f"{what} {value}", exact=True), press=press)
        is_kept(page, sentence)
        assert asked(page).get(what.lower(), "0") == value
    hand.write(sentence_box(page), "Half a sen")
    hand.click(sidebar.get_by_role("button", name="Examples"))
    hand.click(page.get_by_role("menuitem", name="Repeated"))
    settle(page)
    expect(sentence_box(page)).not_to_have_value("Half a sen")  # the clicked example is what was requested
    assert asked(page)["sentence"] == sentence_box(page).input_value()


@pytest.mark.slow
@OFTEN
def test_another_checkpoint_reads_the_visitors_own_sentence(
    shipped: str, visit: Callable[..., Page], times: int
) -> None:
    page = visit(f"{shipped}/tokens", width=1280, height=720)
    hand = Hand(page)
    names = ("sentiment", "gpt-en", "en-fr", "bert-en")
    for n, (sentence, pause, press) in enumerate(gestures(2 * times, seed=6)):
        hand.write(sentence_box(page), sentence)
        page.wait_for_timeout(pause)
        hand.click(page.get_by_test_id("stSidebar").get_by_role("combobox").first, press=press)
        label = read_opening(ROOT / "checkpoints" / names[n % len(names)]).name["en"]
        hand.click(page.get_by_role("option", name=label, exact=True))
        is_kept(page, sentence)
        assert asked(page).get("checkpoint", "en-fr") == names[n % len(names)]


def test_another_language_keeps_the_example_and_every_choice(shipped: str, visit: Callable[..., Page]) -> None:
    """The options have other texts then, by which the browser reports them."""
    page = visit(f"{shipped}/attention?checkpoint=gpt-en", width=1280, height=720)
    hand, sentence, before = Hand(page), sentence_box(page).input_value(), asked(page)
    for code, label in (("FR", "Phrase"), ("EN", "Sentence")):
        hand.click(page.get_by_test_id("stSidebar").get_by_role("radio", name=code, exact=True))
        box = page.get_by_role("textbox", name=label, exact=True)
        expect(box).to_be_visible()
        settle(page)
        expect(box).to_have_value(sentence)
    assert asked(page) == before


@pytest.mark.slow
@OFTEN
def test_target_and_second_sentences_are_kept_too(shipped: str, visit: Callable[..., Page], times: int) -> None:
    page = visit(f"{shipped}/attention", width=1280, height=900)
    hand = Hand(page)
    hand.click(page.get_by_text("Target, padding"))
    target = page.get_by_role("textbox", name="Target text")
    expect(target).to_be_visible()
    settle(page)
    titles = ("Decoding", "Heads", "Attention")[: 1 if times == 1 else 3]
    for (_, pause, press), title in zip(gestures(len(titles), seed=19), titles, strict=True):
        text = f"Le chat dort {pause} fois."
        hand.write(target, text)
        page.wait_for_timeout(pause)
        hand.click(link(page, title), press=press)
        is_open(page, title)
        settle(page)
        assert asked(page).get("target") == text
        expect(target).to_have_value(text)
    second = page.get_by_role("textbox", name="Sentence B")
    for sentence, pause, press in gestures(times, seed=7):
        page.goto(f"{shipped}/compare?layer=1")
        settle(page)
        hand.write(second, sentence)
        page.wait_for_timeout(pause)
        hand.click(link(page, "Tokens"), press=press)
        is_open(page, "Tokens")
        settle(page)
        open_page(page, "Compare")
        expect(second).to_have_value(sentence)


def test_the_page_follows_while_somebody_types(shipped: str, visit: Callable[..., Page]) -> None:
    """The page follows after a pause, or at once on Enter, with one entry in the browser's history."""
    page = visit(f"{shipped}/attention", width=1280, height=720)
    hand = Hand(page)
    hand.write(sentence_box(page), "One bird sings")
    expect(page.locator(".strip .token").filter(has_text="bird")).to_be_visible()
    page.keyboard.type(" and two", delay=55)
    expect(page.locator(".strip .token").filter(has_text="two")).to_be_visible()
    page.keyboard.type(" dogs.", delay=55)
    page.keyboard.press("Enter")
    is_kept(page, "One bird sings and two dogs.")
    page.go_back()  # one step back, not one per pause
    settle(page)
    assert "sentence" not in asked(page)
    page.go_forward()
    is_kept(page, "One bird sings and two dogs.")


@pytest.mark.nightly  # tests/pages/test_surgery.py types and clicks at once in every run
@pytest.mark.parametrize("pause", [0, 450])
def test_the_head_that_surgery_offers_is_removed_from_the_sentence_that_was_typed(
    shipped: str, visit: Callable[..., Page], pause: int
) -> None:
    """The button is clicked while the card may still show the head of the sentence before."""
    new = "My grandmother bakes apple pie every Sunday."
    page = visit(f"{shipped}/surgery?checkpoint=en-fr&sentence={new}", width=1280, height=720)
    card, button = page.locator(".st-key-example"), page.get_by_role("button", name="Keep this head removed")
    wanted = card.locator("strong").first.inner_text()
    old = "The old man told us a story."
    page = visit(f"{shipped}/surgery?checkpoint=en-fr&sentence={old}", width=1280, height=720)
    card, button = page.locator(".st-key-example"), page.get_by_role("button", name="Keep this head removed")
    expect(card).not_to_contain_text(wanted)
    hand = Hand(page)
    hand.write(sentence_box(page), new)
    page.wait_for_timeout(pause)
    hand.click(button)
    expect(page.locator(".st-key-edit-list")).to_contain_text(wanted)
    is_kept(page, new)


@pytest.mark.slow
def test_a_phone_has_the_sentence_above_the_picture(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(shipped, width=390, height=844)
    box = sentence_box(page)
    expect(box).to_be_in_viewport(ratio=0.95)  # its border ends in a fraction of a pixel
    box.fill(SENTENCES[1])
    box.press("Enter")
    page.wait_for_url(lambda address: parse_qs(urlsplit(address).query).get("sentence") == [SENTENCES[1]])
    settle(page)
    expect(box).to_have_value(SENTENCES[1])
    open_page(page, "Tokens")
    expect(box).to_have_value(SENTENCES[1])
    box.fill(SENTENCES[2])  # a draft is taken when the reader taps elsewhere
    page.get_by_role("heading", level=1).click()
    page.wait_for_url(lambda address: parse_qs(urlsplit(address).query).get("sentence") == [SENTENCES[2]])


def test_a_sentence_survives_a_model_that_reads_images(shipped: str, visit: Callable[..., Page]) -> None:
    """A sentence belongs to the reader, and comes back with the first model that reads text."""
    page = visit(f"{shipped}/attention", width=1280, height=720)
    hand = Hand(page)
    hand.write(sentence_box(page), SENTENCES[0])
    for name in ("vit-digits", "gpt-en"):
        hand.click(page.get_by_test_id("stSidebar").get_by_role("combobox").first)
        label = read_opening(ROOT / "checkpoints" / name).name["en"]
        hand.click(page.get_by_role("option", name=label, exact=True))
        settle(page)
    is_kept(page, SENTENCES[0])


def test_a_reload_half_a_second_after_the_last_key_keeps_the_sentence(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/tokens", width=1280, height=720)
    Hand(page).write(sentence_box(page), SENTENCES[1])
    page.wait_for_timeout(500)
    page.reload()
    is_kept(page, SENTENCES[1])
