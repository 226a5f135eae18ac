"""Every lesson as a student plays it: a wrong guess, the hint, then the right option, to the end.

At every task the bar is whole, what was covered is seen after the first guess, and the
page shows no error. At the end the card has the score.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import settle
from tests.browser.test_lesson_covers import as_read, choose
from tests.nights import by_day
from ui.shell.guidance.lessons import ANSWER, lessons
from ui.words.texts import page_text, use_language

pytestmark = [pytest.mark.browser, pytest.mark.slow]
NAMES = [lesson.name for lesson in lessons("en")[0]]
PLAYED = [f"{name} {language} {how}" for name in NAMES for language in ("en", "fr") for how in ("alone", "presented")]
BY_DAY = ["05-what-a-map-is-worth fr presented"]  # five steps on four pages


@pytest.mark.parametrize("played", by_day(PLAYED, BY_DAY))
def test_a_student_who_guesses_wrongly_first_gets_through(
    shipped: str, visit: Callable[..., Page], played: str
) -> None:
    name, language, how = played.split()
    presenter = how == "presented"
    lesson = next(one for one in lessons(language)[0] if one.name == name)
    more = "&presenter=1" if presenter else ""
    page = visit(f"{shipped}/lessons?language={language}{more}", width=1280, height=720)
    page.locator(f".st-key-start-{name} button").click()
    problems = []
    for number, step in enumerate(lesson.steps, 1):
        expect(page.locator(".st-key-lesson-head")).to_contain_text(step.title.replace("`", ""))
        settle(page)
        bar = page.locator(".st-key-lesson-bar")
        for option, shown in ((1, "hint"), (ANSWER, "feedback")):
            choose(page, step, option)
            said = page.locator(f".st-key-lesson-{shown}")
            expect(said).to_contain_text(as_read(step.feedback_on(1) if option else step.explanation))
            expect(page.locator(".st-key-lesson-cover")).to_have_count(0)
            height, inner = bar.evaluate("node => [node.clientHeight, node.scrollHeight]")
            if inner > height + 16 or height > (320 if presenter else 240):  # below the last line there is only padding
                problems.append((number, shown, height, inner))
        if page.get_by_test_id("stException").count() or page.get_by_test_id("stAlertContentError").count():
            problems.append((number, "error"))
        page.locator(".st-key-lesson-next button").click()
    with use_language(language):
        score = page_text("lessons")["score"].format(first=0, right=len(lesson.steps), count=len(lesson.steps))
    expect(page.locator(f".st-key-lesson-{name}")).to_contain_text(score)
    assert not problems, problems
