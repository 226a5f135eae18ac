"""Prepared routes: steps of several lessons as one, for a class of a given length."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from transformer.disk.plain_files import parse_toml, read_plain_text
from transformer.errors import MessageError, text_of
from ui.shell.guidance.lesson_fields import Fields
from ui.shell.guidance.lessons import (
    FALLBACK,
    LESSONS,
    LONGEST_FILE,
    MOST,
    Lesson,
    Step,
    find_lesson,
    lessons,
    state_of,
)
from ui.shell.navigation import page_names
from ui.words.texts import languages

_PLACE = re.compile(r"(\S+) ([1-9]\d{0,3})")  # a lesson and the number of a step, from 1
_KEYS = ("name", "minutes", "steps", "ends_on")  # and the languages, each with a title and an aim


def routes(language: str = FALLBACK) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """Return the routes, each a lesson like any other, and a sentence for everything that cannot be read.

    A route whose steps are not all there is left out: some lessons are only in the repository.
    """
    return _routes(LESSONS / "routes.toml", language, tuple(page_names()), state_of(LESSONS))


@lru_cache(maxsize=16)
def _routes(
    path: Path, language: str, pages: tuple[str, ...], _state: object
) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    try:
        found = parse_toml(read_plain_text(path, LONGEST_FILE)).get("route", [])
        if not isinstance(found, list):
            raise MessageError("a route begins with a line [[route]]")
    except FileNotFoundError:
        return (), ()
    except (OSError, ValueError) as error:
        return (), (f"{path.name} cannot be read: {text_of(error)}",)
    parts = {lesson.name: lesson.steps for lesson in lessons(language)[0]}
    made, problems = [], []
    for number, values in enumerate(found, 1):
        try:
            made.append(_route(values, f"{path.name}, route {number}", parts, language, pages))
        except ValueError as error:
            problems.append(text_of(error))
        except LookupError:
            continue
    return tuple(made), tuple(problems)


def _route(
    values: object, where: str, parts: Mapping[str, tuple[Step, ...]], language: str, pages: Sequence[str]
) -> Lesson:
    """Return a route.

    Raises:
        ValueError: If it is invalid.
        LookupError: If a step or its last page does not exist.
    """
    route = Fields(values, where, (*_KEYS, *languages()), example="a route begins with a line [[route]]")
    spoken, wanted = language if language in route.values else FALLBACK, ", not a title and an aim"
    said = route.texts(spoken, str.strip, wanted)
    route.check(len(said) == 2, spoken, wanted)
    places = [_PLACE.fullmatch(place) for place in route.texts("steps", _PLACE.fullmatch, ", not a list of steps")]
    steps = tuple(parts[place[1]][int(place[2]) - 1] for place in places)
    ends_on = route.text("ends_on", Lesson.ends_on)
    if not steps or ends_on not in pages:
        raise LookupError(f"{where} has no steps, or ends on no page")
    return Lesson(route.text("name"), *said, route.number("minutes", 1, MOST, ", not a number"), steps, ends_on)


def find_course(name: str, language: str = FALLBACK) -> Lesson | None:
    """Return the lesson or route of that name, ``None`` if there is none that can be read."""
    lesson = find_lesson(name, language)
    return lesson or next((route for route in routes(language)[0] if route.name == name), None)
