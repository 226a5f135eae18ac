"""Ready routes: steps of several lessons as one, for a class of a given length (``lessons/routes.toml``)."""

import tomllib

from ui.shell.guidance.lessons import FALLBACK, LESSONS, Lesson, find_lesson, lessons


def routes(language: str = FALLBACK) -> tuple[Lesson, ...]:
    """Each is a lesson like any other; one whose steps are not all there, or cannot be read, is left out."""
    try:
        found = tomllib.loads((LESSONS / "routes.toml").read_text(encoding="utf-8"))["route"]
    except (OSError, tomllib.TOMLDecodeError, KeyError):
        return ()
    parts = {lesson.name: lesson.steps for lesson in lessons(language)[0]}
    made = []
    for route in found:
        places = [(name, int(number)) for name, number in (place.split() for place in route["steps"])]
        if all(number <= len(parts.get(name, ())) for name, number in places):
            title, aim = route.get(language, route[FALLBACK])
            steps = tuple(parts[name][number - 1] for name, number in places)
            made.append(Lesson(route["name"], title, aim, route["minutes"], steps))
    return tuple(made)


def find_course(name: str, language: str = FALLBACK) -> Lesson | None:
    """The lesson or route of that name, ``None`` where there is none that can be read."""
    lesson = find_lesson(name, language)
    return lesson or next((route for route in routes(language) if route.name == name), None)
