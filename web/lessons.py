"""The lessons that the web page can show: all their pages and models are available there."""

from collections.abc import Collection
from typing import Any

from ui.shell.focus import Focus
from ui.shell.guidance.lesson_bar import STOP
from ui.shell.guidance.lessons import PLACE, Lesson, Step, lessons
from ui.shell.share import ON_THE_WEB
from ui.words.texts import page_text

PAGES = ("overview", *ON_THE_WEB)
_TEXTS = ("do", "notice", "check", "hint", "right", "wrong", "back", "next", "finish", "leave", "guess_first")
_OPTIONS = {STOP}  # controls of the app that the page has, too


def lessons_for(checkpoints: Collection[str], languages: Collection[str]) -> list[dict[str, Any]]:
    """Return the lessons that need no other page, control or checkpoint, as JSON values."""
    translated = {one: {lesson.name: lesson for lesson in lessons(one)[0]} for one in languages}
    first = translated[next(iter(languages))]
    return [
        _described({one: found[name] for one, found in translated.items()})
        for name, lesson in first.items()
        if all(_is_possible(step, checkpoints) for step in lesson.steps)
    ]


def bar_texts() -> dict[str, str]:
    """Return the texts around a step, the same as in the app, in the language of this run."""
    page = page_text("lessons")
    return {name: page[name] for name in _TEXTS}


def _is_possible(step: Step, checkpoints: Collection[str]) -> bool:
    changes = {name for name, texts in step.changes.items() if texts}
    return (
        step.page in PAGES
        and step.options.keys() <= _OPTIONS
        and changes <= ({"mask"} if step.page == "masks" else set())
        and not step.focus.get("pads")
        and step.focus.get("checkpoint", Focus().checkpoint) in checkpoints
    )


def _described(versions: dict[str, Lesson]) -> dict[str, Any]:
    """Return one lesson: what each of its steps opens, and its texts in every language."""
    lesson = next(iter(versions.values()))
    steps = []
    for number, step in enumerate(lesson.steps):
        place = {name: step.focus.get(name, getattr(Focus(), name)) for name in PLACE if name != "pads"}
        texts = {one: _texts(version.steps[number]) for one, version in versions.items()}
        more = {"stop": step.options.get(STOP, ""), "mask": step.changes["mask"], "covered": bool(step.covers)}
        steps.append({"page": step.page, "place": place, **more, "texts": texts})
    titles = {one: {"title": version.title, "aim": version.aim} for one, version in versions.items()}
    return {"name": lesson.name, "minutes": lesson.minutes, "texts": titles, "steps": steps}


def _texts(step: Step) -> dict[str, Any]:
    feedback = ["", *(text for _option, text in step.wrong)] if step.question else []
    own = {name: getattr(step, name) for name in ("title", "do", "notice", "question", "explanation", "hint")}
    return {**own, "choices": step.choices, "feedback": feedback}
