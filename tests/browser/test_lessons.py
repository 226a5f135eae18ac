"""The tour and a lesson as a student plays them: covers, hints, the bar, the way back."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

from tests.browser.conftest import (
    PHONE,
    PROJECTOR,
    asked,
    eventually,
    go,
    key,
    open_page,
    path,
    pause,
    sentence_box,
    settle,
    title_of,
    type_sentence,
)
from tests.harness.browser_session import XSRF_COOKIE
from ui.shell.guidance.guesses import shuffled_options
from ui.shell.guidance.lessons import ANSWER, Step, find_course, lessons
from ui.words.texts import page_text, use_language

pytestmark = pytest.mark.browser
TOUR = find_course("tour")
MINE = {"checkpoint": "sentiment", "sentence": "I loved every minute of it.", "layer": "1", "head": "2", "token": "3"}
ASKED = ".st-key-lesson-question"
NAMES = [lesson.name for lesson in lessons("en")[0]]
# How many figures, tables and numbers of the covered parts are visible, and how many elements the keyboard reaches.
_SEEN = """(parts) => {
  const roots = parts.includes("page")
    ? [...document.querySelectorAll("[data-testid=stMainBlockContainer] > [data-testid=stVerticalBlock] > *")]
        .filter((node, place, all) => place > all.findIndex((one) => one.querySelector(".st-key-lesson-bar"))
          && !node.matches(".st-key-token-strip"))
    : parts.flatMap((part) => [...document.querySelectorAll(`.st-key-${part.replaceAll(" ", "-")}`)]);
  const all = [];
  const walk = (node) => {
    all.push(node);
    for (const child of [...(node.shadowRoot?.children ?? []), ...node.children]) walk(child);
  };
  roots.forEach(walk);
  const seen = (node) => node.checkVisibility({visibilityProperty: true}) && node.getBoundingClientRect().height > 5;
  const what = "canvas, svg.main-svg, [data-testid=stMetric], [data-testid=stMarkdown], [data-testid=stDataFrame]";
  return [roots.length > 0, all.filter((node) => node.matches(what) && seen(node)).length,
    all.filter((node) => node.tabIndex >= 0 && seen(node)).length];
}"""


def press(page: Page, what: str) -> None:
    """Press a button of the bar, and look at the page for a moment, as a person does."""
    key(page, f"lesson-{what}").get_by_role("button").click()
    settle(page)
    pause(page, 300)


def is_asked(page: Page) -> bool:
    """Return whether the question can be answered: it waits for its picture."""
    return page.locator(ASKED).count() == 1 and page.locator(ASKED).get_attribute("inert") is None


def guess(page: Page, step: Step, *options: int) -> None:
    """Choose one of ``step.choices`` after the other, then check the last."""
    assert eventually(page, lambda: is_asked(page))
    shown = page.locator(f"{ASKED} [role=radiogroup] label")
    for option in options:
        choice = shown.filter(has_text=as_read(step.choices[option])).last
        expect(choice).to_be_visible()
        exact = [one for one in shown.all() if one.inner_text().strip() == as_read(step.choices[option]).strip()]
        (exact[0] if exact else choice).click()
    press(page, "check")


def as_read(text: str) -> str:
    """Return Markdown as a browser shows it."""
    return text.replace("`", "").replace("*", "")


def is_at(page: Page, step: Step) -> None:
    expect(key(page, "lesson-head")).to_contain_text(as_read(step.title))


def begin(page: Page) -> None:
    page.locator(".st-key-take-the-tour button").filter(visible=True).click()
    settle(page)
    is_at(page, TOUR.steps[0])


def test_the_tour_ends_where_it_began_with_the_score(visit: Callable[..., Page]) -> None:
    page = visit(f"?{urlencode(MINE)}", **PROJECTOR)
    begin(page)
    expect(sentence_box(page)).to_have_value(TOUR.steps[0].focus["sentence"])
    guess(page, TOUR.steps[0], 1, ANSWER)  # a change of mind before "Check"
    press(page, "next")
    for option in (2, 1):  # two wrong answers
        guess(page, TOUR.steps[1], option)
    press(page, "back")
    expect(key(page, "lesson-feedback")).to_be_visible()  # answered questions stay answered
    for number, step in enumerate(TOUR.steps, 1):
        is_at(page, step)
        shown = "number => document.documentElement.dataset.pictureStep === `tour ${number}`"
        page.wait_for_function(shown, arg=number)  # the picture plays from one stop to the next
        press(page, "next")
    expect(page.locator(".st-key-lesson-bar")).to_have_count(0)
    assert path(page) == "/" and asked(page) == MINE
    expect(key(page, "tour-score")).to_contain_text(page_text("overview")["tour_score"].format(first=1, count=2))
    type_sentence(page, "A dull film.")
    expect(page.locator(".st-key-tour-score")).to_have_count(0)


def test_leaving_back_and_a_reload_give_the_readers_view_back(visit: Callable[..., Page]) -> None:
    page = visit(**PROJECTOR)
    begin(page)
    type_sentence(page, "My brother reads a book.")
    assert TOUR.steps[1].any_sentence and not TOUR.steps[0].any_sentence
    press(page, "next")
    expect(sentence_box(page)).to_have_value("My brother reads a book.")
    press(page, "back")
    expect(sentence_box(page)).to_have_value(TOUR.steps[0].focus["sentence"])
    press(page, "leave")
    assert path(page) == "/" and "living picture stop" not in asked(page)
    expect(sentence_box(page)).to_have_value("My brother reads a book.")
    go(page, f"tokens?{urlencode(MINE)}")
    open_page(page, title_of("overview"))
    begin(page)
    page.go_back()
    settle(page)
    expect(page.locator(".st-key-lesson-bar")).to_have_count(0)
    assert asked(page) == MINE
    page.go_forward()
    settle(page)
    is_at(page, TOUR.steps[0])
    page.reload()
    settle(page)
    is_at(page, TOUR.steps[0])
    press(page, "leave")
    assert path(page) == "/" and asked(page) == MINE


def test_on_a_phone_the_question_is_on_the_screen_and_the_bar_leaves_three_quarters(
    visit: Callable[..., Page],
) -> None:
    page = visit("?lesson=tour&language=fr", **PHONE)
    bar, problems = key(page, "lesson-bar"), []
    for number, step in enumerate(find_course("tour", "fr").steps[:4], 1):
        expect(key(page, "lesson-head")).to_be_in_viewport(ratio=1)
        for part in ("[data-testid=stWidgetLabel]", "[role=radiogroup]", ".st-key-lesson-check"):
            expect(page.locator(f"{ASKED} {part}")).to_be_in_viewport(ratio=1)
        for option in (None, 1, ANSWER):  # the question, the hint, the explanation
            if option is not None:
                guess(page, step, option)
            height, inside = bar.evaluate("node => [node.offsetHeight, node.scrollHeight]")
            # Heights are rounded; the last lines below a hint may need a swipe.
            if height > PHONE["height"] * 0.26 or inside > height + 48:
                problems.append((number, option, height, inside))
        press(page, "next")
        assert bar.evaluate("node => node.scrollTop") == 0
    assert not problems


@pytest.mark.sample
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("presenter", [False, True])
def test_a_student_who_guesses_wrongly_first_gets_through(
    visit: Callable[..., Page], name: str, language: str, presenter: bool
) -> None:
    lesson = find_course(name, language)
    page = visit(f"lessons?language={language}&presenter={int(presenter)}", **PROJECTOR)
    key(page, f"start-{name}").get_by_role("button").click()
    problems = []
    for number, step in enumerate(lesson.steps, 1):
        is_at(page, step)
        settle(page)
        bar = key(page, "lesson-bar")
        if step.covers:
            assert page.evaluate(_SEEN, list(step.covers)) == [True, 0, 0], "what answers is covered"
        for option, shown in ((1, "hint"), (ANSWER, "feedback")):
            guess(page, step, option)
            said = as_read(step.feedback_on(1) if option else step.explanation)
            expect(key(page, f"lesson-{shown}")).to_contain_text(said)
            expect(page.locator(".st-key-lesson-cover")).to_have_count(0)
            height, inner = bar.evaluate("node => [node.clientHeight, node.scrollHeight]")
            if inner > height + 16 or height > (320 if presenter else 240):  # below the last line is only padding
                problems.append((number, shown, height, inner))
        if step.covers and not page.evaluate(_SEEN, list(step.covers))[1]:
            problems.append((number, "stays covered"))
        problems += [(number, "error")] * page.get_by_test_id("stAlertContentError").count()
        press(page, "next")
    with use_language(language):
        score = page_text("lessons")["score"].format(first=0, right=len(lesson.steps), count=len(lesson.steps))
    expect(key(page, f"lesson-{name}")).to_contain_text(score)
    assert not problems, problems


def test_a_covered_page_says_what_to_do_and_who_wants_to_see_first_may(visit: Callable[..., Page]) -> None:
    name, number = "04-many-heads", 3
    step = find_course(name).steps[number - 1]
    assert step.covers == ("page",)
    page = visit(f"{step.page}?{urlencode({'lesson': name, 'lesson_step': number, **step.focus})}", **PROJECTOR)
    said = page_text("lessons")["guess_first"]
    expect(page.locator(".st-key-lesson-cover")).to_have_text(said)
    assert page.evaluate(_SEEN, ["page"]) == [True, 0, 0]
    options = page.locator(f"{ASKED} [role=radiogroup] label")
    before = [text.strip() for text in options.all_inner_texts()]
    (cookie,) = [one["value"] for one in page.context.cookies() if one["name"] == XSRF_COOKIE]
    order = shuffled_options(step, (name, number), decode_xsrf_token_string(cookie)[0].hex())
    assert before == [as_read(step.choices[option]) for option in order], "the order of this browser"
    page.reload()
    settle(page)
    assert [text.strip() for text in options.all_inner_texts()] == before
    press(page, "show")
    assert eventually(page, lambda: page.evaluate(_SEEN, ["page"])[1] > 0)
    expect(page.locator(ASKED)).to_be_visible()  # and the reader can still guess


@pytest.mark.nightly
def test_a_map_stands_above_the_bar(visit: Callable[..., Page]) -> None:
    """Most of a map with numbers, and the mask that is painted on, with its legend."""
    for name, number, place, least in (
        ("03-one-head", 4, "attention-step-scaled", 0.8),
        ("08-break-and-mend", 1, "mask-editor", 0.92),
    ):
        step = find_course(name, "fr").steps[number - 1]
        focus = {"lesson": name, "lesson_step": number, "language": "fr", **step.focus}
        page = visit(f"{step.page}?{urlencode(focus)}", **PROJECTOR)
        drawing = page.locator(f".st-key-{place} canvas").first.bounding_box()
        assert key(page, "lesson-bar").bounding_box()["y"] - drawing["y"] >= least * drawing["height"]
