"""Lessons hide the answer until the question has been answered, or the reader has asked to see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

from tests.browser.conftest import ROOT, eventually, settle
from tests.browser.seats import Seats
from tests.harness.browser_session import XSRF_COOKIE
from tests.nights import by_day
from ui.shell.guidance.guesses import shuffled_options
from ui.shell.guidance.lessons import ANSWER, Step, find_lesson, lessons
from ui.words.texts import page_text, use_language

pytestmark = pytest.mark.browser
# For covered parts: how many figures, tables and numbers are visible, and how many elements the keyboard reaches.
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
  return {
    parts: roots.length,
    figures: all.filter((node) => node.matches(what) && seen(node)).length,
    reached: all.filter((node) => node.tabIndex >= 0 && seen(node)).length,
  };
}"""
# One step for each kind of covered part: a map, bars, numbers, outputs, a table, another map, a count, heads, curves.
# Every run tests several parts; 04-many-heads 3 below covers the whole page.
KINDS = by_day(
    [
        ("04-many-heads", 3),
        ("10-looking-it-up", 1),
        ("05-what-a-map-is-worth", 1),
        ("10-looking-it-up", 4),
        ("04-many-heads", 6),
        ("09-who-wrote-this-word", 3),
        ("09-who-wrote-this-word", 5),
        ("01-tokens-and-vectors", 2),
        ("10-looking-it-up", 6),
        ("10-looking-it-up", 7),
    ],
    [("10-looking-it-up", 4)],
)


def open_step(visit: Callable[..., Page], app: str, name: str, number: int, *, language: str = "en", **more) -> Page:
    step = find_lesson(name, language).steps[number - 1]
    focus = {"lesson": name, "lesson_step": number, "language": language, **step.focus, **more}
    page = visit(f"{app}/{step.page if step.page != 'overview' else ''}?{urlencode(focus)}", width=1280, height=720)
    expect(page.locator(".st-key-lesson-bar")).to_be_visible()
    return page


def choose(page: Page, step: Step, option: int) -> None:
    """Choose and check one of ``step.choices``, wherever it is shown."""
    said = re.compile(rf"^\s*{re.escape(as_read(step.choices[option]))}\s*$")
    options = page.locator(".st-key-lesson-question [role=radiogroup] label").filter(has_text=said)
    expect(options).to_have_count(1)  # not while the question is drawn anew beside the old one
    options.click()
    page.locator(".st-key-lesson-check button").click()


def as_read(text: str) -> str:
    """Return Markdown as a browser shows it."""
    return text.replace("`", "").replace("*", "")


def guess_wrongly(page: Page, name: str, number: int, *, language: str = "en") -> None:
    step = find_lesson(name, language).steps[number - 1]
    for option, shown in ((1, "hint"), (2, "feedback")):
        choose(page, step, option)
        expect(page.locator(f".st-key-lesson-{shown}")).to_be_visible()


def is_covered(page: Page, *parts: str) -> None:
    """Check that the parts are drawn, but nothing of them is visible or reached by the keyboard."""
    assert eventually(page, lambda: page.evaluate(_SEEN, list(parts))["parts"] > 0, True)
    hidden = page.evaluate(_SEEN, list(parts))
    assert hidden["figures"] == 0 and hidden["reached"] == 0


@pytest.mark.parametrize("step", KINDS)
def test_the_answer_uncovers_the_figure(shipped: str, visit: Callable[..., Page], step: tuple[str, int]) -> None:
    name, number = step
    covers = find_lesson(name).steps[number - 1].covers
    page = open_step(visit, shipped, name, number)
    page.locator(".st-key-lesson-cover").wait_for(state="attached")
    assert covers
    is_covered(page, *covers)
    guess_wrongly(page, name, number)
    assert eventually(page, lambda: page.evaluate(_SEEN, list(covers))["figures"] > 0, True)


def test_nothing_moves_when_the_answer_uncovers(shipped: str, visit: Callable[..., Page]) -> None:
    page = open_step(visit, shipped, "05-what-a-map-is-worth", 1)
    effect = page.locator(".st-key-attention-effect")
    settle(page)
    before = effect.bounding_box()
    guess_wrongly(page, "05-what-a-map-is-worth", 1)
    settle(page)
    assert eventually(page, effect.bounding_box, before)


def test_the_cover_says_what_to_do_and_who_wants_to_see_first_may(shipped: str, visit: Callable[..., Page]) -> None:
    """The line is in the language of the page, all of which is covered."""
    assert find_lesson("04-many-heads").steps[2].covers == ("page",)
    page = open_step(visit, shipped, "04-many-heads", 3, language="fr")
    with use_language("fr"):
        said = page_text("lessons")["guess_first"]
    expect(page.locator(".st-key-lesson-cover")).to_have_text(said)
    veil = "node => getComputedStyle(node, '::before').content"
    assert said in page.locator("[data-testid=stLayoutWrapper]:has(> .st-key-lesson-bar)").evaluate(veil)
    is_covered(page, "page")
    page.locator(".st-key-lesson-show button").click()
    assert eventually(page, lambda: page.evaluate(_SEEN, ["page"])["figures"] > 0, True)
    expect(page.locator(".st-key-lesson-question")).to_be_visible()  # and the reader can still guess
    expect(page.locator(".st-key-lesson-show")).to_have_count(0)


def test_a_step_that_needs_the_page_covers_nothing(shipped: str, visit: Callable[..., Page]) -> None:
    page = open_step(visit, shipped, "03-one-head", 1)
    assert find_lesson("03-one-head").steps[0].uncovered
    expect(page.locator(".st-key-lesson-cover")).to_have_count(0)
    assert eventually(page, lambda: page.evaluate(_SEEN, ["page"])["figures"] > 0, True)


def test_options_stand_in_the_order_of_this_browser_and_stay_there(shipped: str, visit: Callable[..., Page]) -> None:
    """The cookie that the server reads is the one that the browser keeps."""
    name, number = "04-many-heads", 3
    step = find_lesson(name).steps[number - 1]
    page = open_step(visit, shipped, name, number)
    options = page.locator(".st-key-lesson-question [role=radiogroup] label")
    expect(options).to_have_count(len(step.choices))
    before = [text.strip() for text in options.all_inner_texts()]
    (cookie,) = [one["value"] for one in page.context.cookies() if one["name"] == XSRF_COOKIE]
    token, _time = decode_xsrf_token_string(cookie)
    order = shuffled_options(step, (name, number), token.hex())
    assert before == [as_read(step.choices[option]) for option in order]
    page.reload()
    expect(options).to_have_count(len(step.choices))
    assert [text.strip() for text in options.all_inner_texts()] == before


def test_a_lesson_that_is_left_while_its_script_is_loaded_is_no_error(seats: Seats) -> None:
    """The script observed a bar that was gone, which wrote an error to the console."""
    script = (ROOT / "ui" / "shell" / "guidance" / "lesson_bar.js").read_text(encoding="utf-8")
    data = {"step": "tour 3", "waitsFor": "tour 3", "wait": "Wait."}
    with seats.taken() as seat:
        seat.page.goto("about:blank")
        run = """async ([script, data]) =>
            (await import(`data:text/javascript,${encodeURIComponent(script)}`)).default({ data })"""
        assert seat.page.evaluate(run, [script, data]) is None
        assert seat.page.evaluate("document.documentElement.style.getPropertyValue('--lesson-wait')") == ""


# French, whose lines are longer, in every run.
@pytest.mark.parametrize("count", by_day([1, 3], [1]))
@pytest.mark.parametrize("language", by_day(["en", "fr"], ["fr"]))
def test_the_longest_answers_take_two_lines_and_three_after_a_wrong_guess(
    shipped: str, visit: Callable[..., Page], language: str, count: int
) -> None:
    length = {
        (lesson.name, number): len(f"{step.question} {step.answer} {step.explanation}")
        for lesson in lessons(language)[0]
        for number, step in enumerate(lesson.steps, 1)
    }
    for name, number in sorted(length, key=length.__getitem__)[-count:]:
        step = find_lesson(name, language).steps[number - 1]
        for guessed, lines in ((True, 2), (False, 3)):
            page = open_step(visit, shipped, name, number, language=language)
            if guessed:
                choose(page, step, ANSWER)
            else:
                guess_wrongly(page, name, number, language=language)
            line = page.locator(".st-key-lesson-feedback p").first
            expect(line).to_be_visible()
            settle(page)
            rows = line.evaluate(
                "node => node.getBoundingClientRect().height / parseFloat(getComputedStyle(node).lineHeight)"
            )
            assert rows < lines + 0.3, (name, number, rows)
            assert page.locator(".st-key-lesson-bar").bounding_box()["height"] <= 140 + 20 * lines


# On the page; in the sidebar and a second one on the page at night.
@pytest.mark.parametrize(
    ("name", "number", "part"),
    [
        ("04-many-heads", 5, "token-strip"),
        pytest.param("03-one-head", 9, "choose-head", marks=pytest.mark.nightly),
        pytest.param("04-many-heads", 4, "attention_predicted_cross", marks=pytest.mark.nightly),
    ],
)
def test_the_control_that_a_step_names_is_in_sight_and_lit(
    shipped: str, visit: Callable[..., Page], name: str, number: int, part: str
) -> None:
    page = open_step(visit, shipped, name, number)
    guess_wrongly(page, name, number)
    lit, bar = page.locator(f".st-key-{part}").first, page.locator(".st-key-lesson-bar")

    def is_seen() -> bool:
        box = lit.bounding_box()
        return box is not None and box["y"] >= 30 and box["y"] + box["height"] <= bar.bounding_box()["y"]

    assert eventually(page, is_seen, True)
    assert lit.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
