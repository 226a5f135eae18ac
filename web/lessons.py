"""The lessons that the page can show with its models; it links to a step that only the app has."""

from collections.abc import Collection
from random import Random
from typing import Any
from urllib.parse import urlencode

from ui.shell.focus import Focus
from ui.shell.guidance.lesson_bar import STOP
from ui.shell.guidance.lessons import PLACE, Lesson, Step, lessons
from ui.shell.share import ON_THE_WEB
from ui.words.texts import page_text, use_language

PAGES = ("overview", *ON_THE_WEB)
_TEXTS = ("do", "notice", "check", "hint", "right", "wrong", "back", "next", "finish", "leave")
_MOST_ELSEWHERE = 1  # steps of a lesson that only the app can show: the page links to them


def lessons_for(
    checkpoints: Collection[str], languages: Collection[str], *, links_to_app: bool
) -> list[dict[str, Any]]:
    """Return the lessons whose models the page has, and all their steps but one, as JSON values.

    Args:
        checkpoints: Names of the models.
        languages: Languages of the texts.
        links_to_app: Whether a step that only the app has is kept, for a link to it.
    """
    translated = {one: {lesson.name: lesson for lesson in lessons(one)[0]} for one in languages}
    first = translated[next(iter(languages))]
    return [
        _described({one: found[name] for one, found in translated.items()}, links_to_app)
        for name, lesson in first.items()
        if {step.focus.get("checkpoint", Focus().checkpoint) for step in lesson.steps} <= set(checkpoints)
        and sum(not _is_possible(step) for step in lesson.steps) <= _MOST_ELSEWHERE
    ]


def bar_texts() -> dict[str, str]:
    """Return the texts around a step, the same as in the app, in the language of this run."""
    page = page_text("lessons")
    return {name: page[name] for name in _TEXTS}


def _is_possible(step: Step) -> bool:
    return (
        step.page in PAGES
        and set(step.options) <= {STOP}
        and not any(step.changes.values())
        and not step.covers
        and not step.focus.get("pads")
    )


def _described(versions: dict[str, Lesson], links_to_app: bool) -> dict[str, Any]:
    """Return one lesson: what each of its steps opens, and its texts in every language."""
    lesson = next(iter(versions.values()))
    steps = []
    for number, step in enumerate(lesson.steps):
        place = {name: step.focus.get(name, getattr(Focus(), name)) for name in PLACE if name != "pads"}
        texts = {one: _texts(version.steps[number], one) for one, version in versions.items()}
        if _is_possible(step):
            shown = {"page": step.page, "stop": step.options.get(STOP, ""), "address": ""}
        elif links_to_app:
            shown = {"page": "overview", "stop": "", "address": f"{step.page}?{urlencode(place)}"}
        else:
            continue
        order = list(range(len(step.choices)))  # in which the options are offered: the first of them is the answer
        Random(f"{lesson.name} {number}").shuffle(order)
        steps.append({**shown, "place": place, "order": order, "texts": texts})
    titles = {one: {"title": version.title, "aim": version.aim} for one, version in versions.items()}
    return {"name": lesson.name, "minutes": lesson.minutes, "texts": titles, "steps": steps}


def _texts(step: Step, language: str) -> dict[str, Any]:
    feedback = ["", *(text for _option, text in step.wrong)] if step.question else []
    own = {name: getattr(step, name) for name in ("title", "do", "notice", "question", "explanation", "hint")}
    with use_language(language):
        page = page_text(step.page).title
    return {**own, "choices": step.choices, "feedback": feedback, "page": page}
