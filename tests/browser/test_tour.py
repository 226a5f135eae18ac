"""The tour at a newcomer's pace: it asks about what is visible and gives the reader's sentence back."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import eventually, open_page, pause, settle
from tests.browser.test_shell import address
from tests.nights import by_day
from ui.shell.guidance.routes import find_course
from ui.words.texts import page_text

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PROJECTOR, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
TOUR = find_course("tour")
MINE = {"checkpoint": "sentiment", "sentence": "I loved every minute of it.", "layer": "1", "head": "2", "token": "3"}
ASKED = ".st-key-lesson-question"


def begin(page: Page) -> None:
    page.locator(".st-key-take-the-tour button").filter(visible=True).click()
    settle(page)
    expect(page.locator(".st-key-lesson-head")).to_contain_text(TOUR.steps[0].title)


def press(page: Page, what: str) -> None:
    """Press a button of the bar, and look at the page for a moment, as a person does."""
    page.locator(f".st-key-lesson-{what} button").filter(visible=True).click()
    settle(page)
    pause(page, 400)


def is_open(page: Page) -> bool:
    """Whether the question can be answered."""
    return page.locator(ASKED).count() == 1 and page.locator(ASKED).get_attribute("inert") is None


def guess(page: Page, *options: str) -> None:
    """Choose one option after the other, then check the last."""
    assert eventually(page, lambda: is_open(page), True)
    for option in options:
        choice = page.locator(f"{ASKED} [role=radiogroup] label").filter(has_text=option.replace("`", ""))
        choice.scroll_into_view_if_needed()
        choice.click()
        pause(page, 300)
    press(page, "check")


def has_typed(page: Page, sentence: str) -> None:
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value(sentence)


def test_the_tour_ends_where_it_began_with_the_score_and_an_invitation(
    shipped: str, visit: Callable[..., Page]
) -> None:
    page = visit(f"{shipped}/?{urlencode(MINE)}", **PROJECTOR)
    begin(page)
    has_typed(page, TOUR.steps[0].focus["sentence"])
    guess(page, TOUR.steps[0].choices[1], TOUR.steps[0].answer)  # a change of mind before "Check"
    press(page, "next")
    for option in TOUR.steps[1].choices[:0:-1]:  # two wrong answers
        guess(page, option)
    press(page, "back")
    expect(page.locator(".st-key-lesson-feedback")).to_be_visible()  # answered questions stay answered
    for _ in TOUR.steps:
        press(page, "next")
    expect(page.locator(".st-key-lesson-bar")).to_have_count(0)
    has_typed(page, MINE["sentence"])
    assert urlsplit(page.url).path == "/" and address(page) == MINE
    text = page_text("overview")
    invitation = page.locator(".st-key-tour-score").filter(visible=True)
    expect(invitation).to_contain_text(text["tour_own"].replace("*", ""))  # it is back, and need not be typed
    expect(invitation).to_contain_text(text["tour_score"].format(first=1, count=2))
    expect(invitation.get_by_role("button", name=text["tour_again"])).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_in_viewport()

    page.get_by_role("textbox", name="Sentence").fill("A dull film.")
    page.keyboard.press("Control+Enter")
    settle(page)
    expect(page.locator(".st-key-tour-score")).to_have_count(0)  # the answer has been accepted


def test_leaving_in_the_middle_gives_view_and_page_back_even_after_a_reload(
    shipped: str, visit: Callable[..., Page]
) -> None:
    page = visit(f"{shipped}/lessons?{urlencode(MINE)}", **PROJECTOR)
    page.locator(".st-key-start-tour button").click()
    settle(page)
    press(page, "next")
    page.reload()
    settle(page)
    expect(page.locator(".st-key-lesson-head")).to_contain_text(TOUR.steps[1].title)
    step = page.url
    press(page, "leave")
    assert urlsplit(page.url).path == "/lessons" and address(page) == MINE
    page.go_back()
    settle(page)
    assert page.url == step and "living picture stop" in address(page)


def test_a_sentence_typed_during_the_tour_is_used_and_not_lost(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(shipped, **PROJECTOR)
    begin(page)
    page.get_by_role("textbox", name="Sentence").fill("My brother reads a book.")
    page.keyboard.press("Control+Enter")
    settle(page)
    assert TOUR.steps[1].any_sentence and not TOUR.steps[0].any_sentence
    press(page, "next")
    has_typed(page, "My brother reads a book.")
    expect(page.locator(".st-key-lesson-sentence")).to_have_count(0)
    press(page, "back")
    given = TOUR.steps[0].focus["sentence"]
    has_typed(page, given)
    expect(page.locator(".st-key-lesson-bar")).to_contain_text(
        page_text("lessons")["other_sentence"].format(sentence=given)
    )
    press(page, "leave")
    has_typed(page, "My brother reads a book.")
    assert "living picture stop" not in address(page)


def test_back_in_the_browser_goes_through_the_steps_and_out_of_the_tour(
    shipped: str, visit: Callable[..., Page]
) -> None:
    page = visit(f"{shipped}/tokens?{urlencode(MINE)}", **PROJECTOR)
    open_page(page, "Overview")
    begin(page)
    press(page, "next")
    page.go_back()
    settle(page)
    expect(page.locator(".st-key-lesson-head")).to_contain_text(TOUR.steps[0].title)
    page.go_back()
    settle(page)
    expect(page.locator(".st-key-lesson-bar")).to_have_count(0)
    has_typed(page, MINE["sentence"])
    assert urlsplit(page.url).path == "/" and address(page) == MINE
    page.go_forward()
    settle(page)
    expect(page.locator(".st-key-lesson-head")).to_contain_text(TOUR.steps[0].title)
    press(page, "leave")
    assert urlsplit(page.url).path == "/" and address(page) == MINE


def test_a_question_waits_for_its_picture(shipped: str, visit: Callable[..., Page]) -> None:
    """The picture plays from one stop to the next, without revealing the answer to the question."""
    page = visit(f"{shipped}/?lesson=tour", **PROJECTOR)
    waited = []
    for number, step in enumerate(TOUR.steps, 1):
        assert eventually(page, lambda: is_open(page), True)
        shown = page.evaluate("document.documentElement.dataset.pictureStep")
        assert shown == f"tour {number}", step.title
        if number < len(TOUR.steps):
            page.locator(".st-key-lesson-next button").click()
            expect(page.locator(".st-key-lesson-head")).to_contain_text(TOUR.steps[number].title)
            waited.append(not is_open(page))
    assert waited.count(True) >= 2, waited
    page.locator(".st-key-lesson-back button").click()  # back to an earlier stop, which is there at once
    expect(page.locator(".st-key-lesson-head")).to_contain_text(TOUR.steps[-2].title)
    assert eventually(page, lambda: is_open(page), True)


def test_a_link_to_an_unfolded_stop_finds_it_unfolded(shipped: str, visit: Callable[..., Page]) -> None:
    """The picture asks for the numbers of the layer while it is being made."""
    page = visit(f"{shipped}/?lesson=tour&lesson_step=4", **PROJECTOR)
    for number in (4, 5):
        expect(page.locator(".st-key-lesson-head")).to_contain_text(TOUR.steps[number - 1].title)
        shown = "number => document.documentElement.dataset.pictureStep === `tour ${number}`"
        page.wait_for_function(shown, arg=number)
        assert eventually(page, lambda: is_open(page), True)
        press(page, "next")


@pytest.mark.parametrize("language", by_day(["en", "fr"], ["fr"]))  # French lines are longer
def test_on_a_phone_the_question_is_on_the_screen_and_the_bar_leaves_three_quarters(
    shipped: str, visit: Callable[..., Page], language: str
) -> None:
    page = visit(f"{shipped}/?lesson=tour&language={language}", **PHONE)
    bar, problems = page.locator(".st-key-lesson-bar"), []
    for number, step in enumerate(find_course("tour", language).steps, 1):
        expect(page.locator(".st-key-lesson-head")).to_be_in_viewport(ratio=1)
        for part in ("[data-testid=stWidgetLabel]", "[role=radiogroup]", ".st-key-lesson-check"):
            expect(page.locator(f"{ASKED} {part}")).to_be_in_viewport(ratio=1)  # it was off the screen, to the right
        for option in ("", step.choices[1], step.answer):  # the question, the hint, the explanation
            if option:
                guess(page, option)
            if option == step.choices[1]:
                expect(page.locator(".st-key-lesson-hint")).to_be_in_viewport()
            height, inside = bar.evaluate("node => [node.offsetHeight, node.scrollHeight]")
            # Heights are rounded; the last lines below a hint may need a swipe.
            if height > PHONE["height"] * 0.26 or inside > height + 48:
                problems.append((number, option, height, inside))
        if number < len(TOUR.steps):
            press(page, "next")
            assert bar.evaluate("node => node.scrollTop") == 0
    assert not problems
