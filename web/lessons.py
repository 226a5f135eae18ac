"""The lessons that the page can show with its models; it links to a step that only the app has."""

import re
from collections.abc import Collection
from typing import Any
from urllib.parse import urlencode

from ui.shell.focus import Focus
from ui.shell.guidance.lesson_bar import STOP
from ui.shell.guidance.lessons import PLACE, Lesson, Step, lessons
from ui.shell.share import ON_THE_WEB
from ui.words.texts import page_text, use_language

PAGES = ("overview", *ON_THE_WEB)
_TEXTS = ("do", "notice", "check", "hint", "right", "wrong", "back", "next", "finish", "leave", "guess_first")
# Controls of the app that the page has, too, by page; of some only these values.
_OPTIONS: dict[str, dict[str, tuple[object, ...] | None]] = {
    "overview": {STOP: None},
    "attention": {"attention_section": ("path", "trust"), "attention_step": None},
    "compare": {"shown_head": ("chosen",)},
}
# Other pages of the app whose steps the page shows on one of its own, and what a step may change there.
_SHOWN_ON = {"surgery": "attention", "compare": "attention"}
_CHANGES = {"masks": {"mask"}, "surgery": {"edit"}, "compare": {"second"}}
_REMOVED = re.compile(r"zero:\w+\.\d+\.(self|cross)\.\d+|drop:\w+\.\d+\.(self|cross)")
_MOST_ELSEWHERE = 1  # steps of a lesson that only the app can show: the page links to them


def lessons_for(checkpoints: Collection[str], languages: Collection[str]) -> list[dict[str, Any]]:
    """Return the lessons whose models the page has, and all their steps but one, as JSON values."""
    translated = {one: {lesson.name: lesson for lesson in lessons(one)[0]} for one in languages}
    first = translated[next(iter(languages))]
    return [
        _described({one: found[name] for one, found in translated.items()})
        for name, lesson in first.items()
        if {step.focus.get("checkpoint", Focus().checkpoint) for step in lesson.steps} <= set(checkpoints)
        and sum(not _is_possible(step) for step in lesson.steps) <= _MOST_ELSEWHERE
    ]


def bar_texts() -> dict[str, str]:
    """Return the texts around a step, the same as in the app, in the language of this run."""
    page = page_text("lessons")
    return {name: page[name] for name in _TEXTS}


def _is_possible(step: Step) -> bool:
    options = _OPTIONS.get(step.page, {})
    changes = {name for name, texts in step.changes.items() if texts}
    return (
        (step.page in PAGES or step.page in _SHOWN_ON)
        and all(name in options and value in (options[name] or (value,)) for name, value in step.options.items())
        and changes <= _CHANGES.get(step.page, set())
        and all(_REMOVED.fullmatch(edit) for edit in step.changes["edit"])
        and not step.focus.get("pads")
    )


def _described(versions: dict[str, Lesson]) -> dict[str, Any]:
    """Return one lesson: what each of its steps opens, and its texts in every language."""
    lesson = next(iter(versions.values()))
    steps = []
    for number, step in enumerate(lesson.steps):
        place = {name: step.focus.get(name, getattr(Focus(), name)) for name in PLACE if name != "pads"}
        texts = {one: _texts(version.steps[number], one) for one, version in versions.items()}
        possible = _is_possible(step)
        shown = {name: list(step.changes[name] if possible else ()) for name in ("mask", "edit", "second")}
        steps.append(
            {
                "page": _SHOWN_ON.get(step.page, step.page) if possible else "overview",
                "place": place,
                "stop": step.options.get(STOP, ""),
                "section": step.options.get("attention_section", "") if possible else "",
                "head_step": step.options.get("attention_step", 0),
                "below": possible and step.page == "attention" and bool(step.options) and bool(step.figure),
                **shown,
                "covers": list(step.covers) if possible else [],
                "elsewhere": not possible,
                "address": f"{step.page}?{urlencode(place)}",
                "texts": texts,
            }
        )
    titles = {one: {"title": version.title, "aim": version.aim} for one, version in versions.items()}
    return {"name": lesson.name, "minutes": lesson.minutes, "texts": titles, "steps": steps}


def _texts(step: Step, language: str) -> dict[str, Any]:
    feedback = ["", *(text for _option, text in step.wrong)] if step.question else []
    own = {name: getattr(step, name) for name in ("title", "do", "notice", "question", "explanation", "hint")}
    with use_language(language):
        page = page_text(step.page).title
    return {**own, "choices": step.choices, "feedback": feedback, "page": page}
