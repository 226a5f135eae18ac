"""Prepared routes: steps of several lessons as one, for a class of a given length."""

from __future__ import annotations

import re
from collections.abc import Mapping

from transformer.disk.plain_files import parse_toml, read_plain_text
from ui.shell.guidance.lessons import FALLBACK, LESSONS, LONGEST_FILE, Lesson, Step, find_lesson, lessons
from ui.shell.navigation import page_names

_PLACE = re.compile(r"(\S+) ([1-9]\d{0,3})")  # a lesson and the number of a step, from 1


def routes(language: str = FALLBACK) -> tuple[Lesson, ...]:
    """Return the routes, each a lesson like any other; an incomplete or invalid one is left out."""
    try:
        found = parse_toml(read_plain_text(LESSONS / "routes.toml", LONGEST_FILE)).get("route")
    except (OSError, ValueError):
        return ()
    parts = {lesson.name: lesson.steps for lesson in lessons(language)[0]}
    made = [_route(values, parts, language) for values in found] if isinstance(found, list) else []
    return tuple(route for route in made if route is not None)


def _route(values: object, parts: Mapping[str, tuple[Step, ...]], language: str) -> Lesson | None:
    if not isinstance(values, dict):
        return None
    name, minutes, places = values.get("name"), values.get("minutes"), values.get("steps")
    texts = values.get(language, values.get(FALLBACK))
    if not (isinstance(name, str) and type(minutes) is int and _are_texts(texts) and len(texts) == 2):
        return None
    if not _are_texts(places) or not places:
        return None
    steps = []
    for place in places:
        named = _PLACE.fullmatch(place)
        if named is None or int(named[2]) > len(parts.get(named[1], ())):
            return None
        steps.append(parts[named[1]][int(named[2]) - 1])
    title, aim = texts
    ends_on = values.get("ends_on", Lesson.ends_on)
    return Lesson(name, title, aim, minutes, tuple(steps), ends_on) if ends_on in page_names() else None


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(one, str) and one.strip() for one in values)


def find_course(name: str, language: str = FALLBACK) -> Lesson | None:
    """Return the lesson or route of that name, ``None`` if there is none that can be read."""
    lesson = find_lesson(name, language)
    return lesson or next((route for route in routes(language) if route.name == name), None)
