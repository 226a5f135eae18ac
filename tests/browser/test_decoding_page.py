"""Decoding in a browser: keys, buttons and tokens move the stepper at once, and the address follows."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

import transformer
from tests.browser.conftest import pause, settle
from tests.browser.scenes import painted
from tests.browser.seats import Seat
from transformer.predictions.written_text import is_choice_of_words

pytestmark = pytest.mark.browser
SENTENCE = "The old man told us a story."


def count(page: Page) -> Locator:
    return page.locator(".stepper .count")


def current(page: Page) -> Locator:
    return page.locator(".stepper [aria-current=step]")


def sentence_about(page: Page) -> str:
    return page.locator(".stepper .sentence").inner_text()


def drawn_step(page: Page) -> int:
    return painted(page.locator(".stepper canvas"))[0]["step"]


def rest(page: Page, step: int) -> None:
    """Wait until the sections below show that step."""
    expect(page.get_by_text(f"Step {step} is marked")).to_be_visible(timeout=60_000)
    settle(page)


def step_in_address(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("step", ["0"])[-1]


def hesitant_step(checkpoint: transformer.Checkpoint, sentence: str) -> int:
    """Return the step of the least likely word or token; a text without a step in the address opens there."""
    decoding = transformer.decode(checkpoint, sentence)
    words = [step for step in decoding.steps if is_choice_of_words(decoding, step.index)]
    return 1 + min(words or decoding.steps, key=lambda step: step.chosen.probability).index


@pytest.fixture
def decoding(app: str, visit: Callable[..., Page]) -> Page:
    page = visit(f"{app}/decoding?{urlencode({'checkpoint': 'tiny-translator', 'sentence': SENTENCE, 'step': 0})}")
    expect(count(page)).to_contain_text("step 1 of")
    return page


def test_keys_buttons_and_tokens_walk_through_the_answer_and_back(decoding: Page) -> None:
    total = int(count(decoding).inner_text().split()[-1])
    said = [sentence_about(decoding)]
    for step in (2, 3):
        decoding.keyboard.press("ArrowRight")
        expect(count(decoding)).to_have_text(f"step {step} of {total}")
        said.append(sentence_about(decoding))
        expect(current(decoding)).to_have_text(said[-1].split(" the next token is ")[1].split(",")[0])
    assert len(set(said)) == 3
    rest(decoding, 3)
    assert step_in_address(decoding) == "2"
    decoding.keyboard.press("ArrowLeft")
    expect(decoding.locator(".stepper .sentence")).to_have_text(said[1], use_inner_text=True)
    decoding.keyboard.press("End")
    expect(count(decoding)).to_have_text(f"step {total} of {total}")
    expect(decoding.get_by_role("button", name="one step forward")).to_be_disabled()
    decoding.keyboard.press("ArrowRight")  # the last step is the end
    decoding.keyboard.press("Home")
    expect(decoding.locator(".stepper .sentence")).to_have_text(said[0], use_inner_text=True)
    expect(decoding.get_by_role("button", name="one step back")).to_be_disabled()

    decoding.get_by_role("button", name="one step forward").click()
    rest(decoding, 2)
    assert step_in_address(decoding) == "1"
    decoding.locator(".stepper .line button").nth(4).click()
    expect(count(decoding)).to_contain_text("step 5 of")
    rest(decoding, 5)
    assert step_in_address(decoding) == "4"


def test_stepping_sends_nothing_until_the_reader_rests(app: str, sit: Callable[..., Seat]) -> None:
    seat = sit(f"{app}/decoding?{urlencode({'checkpoint': 'tiny-translator', 'sentence': SENTENCE, 'step': 0})}")
    page = seat.page
    expect(count(page)).to_contain_text("step 1 of", timeout=30_000)
    settle(page)
    seat.forget_frames()
    pixels = page.evaluate_handle("() => new Set()")
    for step in range(2, 7):
        page.keyboard.press("ArrowRight")
        expect(count(page)).to_contain_text(f"step {step} of")
        assert drawn_step(page) == step - 1
        page.locator(".stepper canvas").evaluate("(canvas, seen) => seen.add(canvas.toDataURL())", pixels)
    assert seat.sent == seat.received == [] and pixels.evaluate("seen => seen.size") == 5
    expect(page.get_by_text("Step 1 is marked")).to_be_visible()  # sections that lag behind name their step
    rest(page, 6)
    assert len(seat.sent) == 1 and step_in_address(page) == "5"
    expect(page.get_by_text("Step 6:")).to_be_visible()
    expect(count(page)).to_contain_text("step 6 of")
    seat.forget_frames()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(1500)
    assert seat.sent == seat.received == []  # forward and back again


def test_moves_are_kept_when_something_else_is_clicked_before_the_rest_is_over(decoding: Page) -> None:
    for _ in range(3):
        decoding.keyboard.press("ArrowRight")
    decoding.get_by_role("radio", name="its own text").click()
    rest(decoding, 4)
    expect(count(decoding)).to_contain_text("step 4 of")
    decoding.locator(".stepper .line button").nth(4).click()
    decoding.get_by_role("radio", name="Strategies").click()
    settle(decoding)
    decoding.wait_for_timeout(1200)
    decoding.get_by_role("radio", name="Step by step").click()
    rest(decoding, 5)
    expect(count(decoding)).to_contain_text("step 5 of")
    assert step_in_address(decoding) == "4"


def test_another_word_moves_the_reader_to_where_it_is(decoding: Page) -> None:
    for _ in range(2):
        decoding.keyboard.press("ArrowRight")
    rest(decoding, 3)
    box = decoding.get_by_role("combobox", name="Another word at step 3")
    box.fill("parapluie")
    pause(decoding, 500)  # the box compares what is typed with its options
    box.press("Enter")
    settle(decoding)
    decoding.get_by_role("button", name="Continue from there").click()
    expect(decoding.locator(".stepper .sentence")).to_contain_text("because you forced it")
    expect(count(decoding)).to_contain_text("step 3 of")
    decoding.get_by_role("button", name="original").click()
    expect(count(decoding)).to_contain_text("step 1 of")


@pytest.mark.nightly  # every run opens a step by an address below, and all controls in a new tab (test_history.py)
def test_a_copied_address_opens_at_the_same_step(decoding: Page, visit: Callable[..., Page]) -> None:
    decoding.get_by_role("radio", name="sampling").click()
    settle(decoding)
    # Away from the switch, which uses arrow keys itself.
    decoding.get_by_role("heading", name="Decoding").click()
    decoding.keyboard.press("Home")
    decoding.keyboard.press("ArrowRight")
    rest(decoding, 2)
    assert step_in_address(decoding) == "1"
    other = visit(decoding.url)
    expect(count(other)).to_contain_text("step 2 of")
    assert drawn_step(other) == 1
    assert sentence_about(other) == sentence_about(decoding)
    assert "drawn with a chance" in sentence_about(other)


def test_a_long_text_opens_with_its_step_in_view(shipped: str, visit: Callable[..., Page]) -> None:
    query = {"checkpoint": "en-fr", "sentence": " ".join([SENTENCE] * 4), "step": 99}  # or the last
    page = visit(f"{shipped}/decoding?{urlencode(query)}", width=390, height=844)
    expect(current(page)).to_be_visible()
    line = page.locator(".stepper .line")
    assert line.evaluate("line => line.scrollHeight > line.clientHeight + 40")
    page.wait_for_function(
        """([line, token]) => token.getBoundingClientRect().top >= line.getBoundingClientRect().top
             && token.getBoundingClientRect().bottom <= line.getBoundingClientRect().bottom""",
        arg=[line.element_handle(), current(page).element_handle()],
        timeout=10_000,
    )


def test_arrow_keys_in_a_text_box_stay_there_and_another_sentence_opens_where_the_model_hesitates(
    decoding: Page, tiny_checkpoint: Callable
) -> None:
    box = decoding.get_by_role("textbox", name="Sentence")
    box.click()
    box.press("ArrowRight")
    box.press("ArrowRight")
    settle(decoding)
    expect(count(decoding)).to_contain_text("step 1 of")
    decoding.get_by_role("button", name="one step forward").click()
    expect(count(decoding)).to_contain_text("step 2 of")
    box.fill("It is raining, so take your umbrella.")
    box.press("Enter")
    settle(decoding)
    wanted = hesitant_step(tiny_checkpoint("translator"), "It is raining, so take your umbrella.")
    expect(count(decoding)).to_contain_text(f"step {wanted} of")


def test_choosing_one_head_shows_the_row_of_heads(decoding: Page) -> None:
    """The choice is in a fragment and the list beside the sentence, so the whole page has to run."""
    heads = decoding.locator(".st-key-choose-head")
    expect(heads).to_have_count(0)
    choices = decoding.locator(".st-key-attention_heads").get_by_role("radio")
    choices.last.click()
    expect(heads).to_be_visible()
    settle(decoding)
    assert parse_qs(urlsplit(decoding.url).query)["attention_heads"] == ["one"]
    choices.first.click()
    expect(heads).to_have_count(0)
