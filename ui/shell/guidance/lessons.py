"""Lessons and routes as instructors write them, in ``lessons/``.

They are validated; errors name the file, the step and the field.

A lesson, ``lessons/<language>/<number>-<name>.toml``, has ``title``, ``aim``, ``minutes``, optionally a table ``focus``
for all its steps, and a ``[[step]]`` per step. Routes are in ``lessons/routes.toml``.
``lessons/README.md`` explains it to instructors.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformer.disk.plain_files import parse_toml, read_plain_text
from transformer.errors import MessageError, text_of
from transformer.runs.attention_view import KINDS
from transformer.runs.edit_specs import EditSpec
from transformer.runs.traces import STACKS
from transformer.text.message import did_you_mean, short_repr
from ui.compute.loading import IN_THE_REPOSITORY, REPOSITORY
from ui.shell.focus import MAX_PADS, Focus
from ui.shell.guidance.regions import NAME, PAGE
from ui.shell.navigation import GROUPS, page_names
from ui.words.once_a_run import once_a_run
from ui.words.texts import languages

LESSONS = REPOSITORY / "lessons"
FALLBACK = "en"
LONGEST_FILE = 200_000  # bytes
MAX_STEPS = 40
PLACE = ("checkpoint", "sentence", "target", "stack", "kind", "layer", "head", "token", "pads")
CHANGES = ("edit", "mask", "second")  # parameters besides the controls of a page, under their names in the address
QUESTION = ("question", "answer", "explanation", "hint", "wrong")
ANSWER = 0  # index of the answer in ``choices``
_STEP_KEYS = (
    *("page", "title", "do", "notice", "focus", "options", "figure", "cover", "open", "light", "any_sentence"),
    *QUESTION,
    *CHANGES,
)
_LESSON_KEYS = ("title", "aim", "minutes", "focus", "step")
_MASK = re.compile(
    r"own|layer|no_causal|no_padding|itself|(window|word) \d{1,5}|(allow|block) \d{1,5}-\d{1,5}(,\d{1,5}-\d{1,5})*"
)
_PLACE = re.compile(r"(\S+) ([1-9]\d{0,3})")  # a lesson and the number of a step, from 1
_ROUTE_KEYS = ("name", "minutes", "steps", "ends_on")  # and the languages, each with a title and an aim
MOST = 10**6  # the largest number that a field may hold
_ALLOWED = {"stack": STACKS, "kind": KINDS}


@dataclass(frozen=True)
class Step:
    """One step: what to do on ``page`` and what to notice there, and optionally a question.

    Attributes:
        answer: The correct option.
        explanation: Shown with the answer, whatever was guessed.
        hint: Shown after a wrong guess, before the second try.
        wrong: The other options, each with its feedback.
        focus: Every name of ``PLACE`` that differs from ``Focus()``.
        options: Values of the page's controls, by key.
        changes: Every name of ``CHANGES`` with its texts in the address: edits, a painted mask, a second sentence.
        figure: Key of the part of the page to scroll to; "" for its main figure.
        covers: Keys of the parts that show the answer, hidden until the guess.
        uncovered: The reason why no parts are covered, if the question is answered by using the page.
        lights: Keys of the controls that the step names.
        any_sentence: Whether its texts hold for every sentence, so that the step can be shown with the reader's own.
    """

    page: str
    title: str
    do: str
    notice: str
    question: str = ""
    answer: str = ""
    explanation: str = ""
    hint: str = ""
    wrong: tuple[tuple[str, str], ...] = ()
    focus: Mapping[str, str | int] = field(default_factory=dict)
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict.fromkeys(CHANGES, ()))
    figure: str = ""
    covers: tuple[str, ...] = ()
    uncovered: str = ""
    lights: tuple[str, ...] = ()
    any_sentence: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """Return all options, the answer first; readers see them in another order (``guesses.py``)."""
        return (self.answer, *(text for text, _feedback in self.wrong)) if self.question else ()

    def feedback_on(self, option: int) -> str:
        """Return the feedback for the wrong option at this index of ``choices``."""
        return self.wrong[option - 1][1]

    def focused(self, focus: Focus, *, default: Focus) -> Focus:
        """Return ``focus`` moved to this step's location; what the step does not name is as in ``default``."""
        return replace(focus, **({name: getattr(default, name) for name in PLACE} | dict(self.focus)))


@dataclass(frozen=True)
class Lesson:
    """A lesson.

    Attributes:
        name: The file's name without extension, by which lessons are sorted.
        ends_on: The page to which its last step leads.
    """

    name: str
    title: str
    aim: str
    minutes: int
    steps: tuple[Step, ...]
    ends_on: str = "lessons"


def lessons(language: str = FALLBACK) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """Return all lessons in one language, and a sentence for every file that cannot be read.

    A lesson without a valid translation is returned in English. Steps about a checkpoint that only the repository has
    are left out in the installed program.
    """
    return _read_all(language, state_of(LESSONS))[0]


def routes(language: str = FALLBACK) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """Return prepared routes, and a sentence for everything that cannot be read.

    A route is steps of several lessons as one, for a class of a given length. One whose steps are not all there is left
    out: some lessons are only in the repository.
    """
    return _read_all(language, state_of(LESSONS))[1]


def find_course(name: str, language: str = FALLBACK) -> Lesson | None:
    """Return the lesson or route of that name, ``None`` if there is none that can be read.

    A lesson that got another number since a link was copied is found by the rest of its name.
    """
    found, rest = lessons(language)[0], name.partition("-")[2]
    exact = next((course for course in (*found, *routes(language)[0]) if course.name == name), None)
    return exact or next((lesson for lesson in found if rest and lesson.name.partition("-")[2] == rest), None)


State = tuple[Path, frozenset[tuple[str, int]], frozenset[str], tuple[str, ...]]


@once_a_run
def state_of(folder: Path) -> State:
    """Return what lessons depend on: files with their times, missing checkpoints, existing pages.

    Lessons are read again only after it has changed.
    """
    files = [path for path in folder.rglob("*.toml") if path.exists()]  # a link may lead nowhere
    times = frozenset((str(path), path.stat().st_mtime_ns) for path in files)
    missing = [name for name in IN_THE_REPOSITORY if not (REPOSITORY / "checkpoints" / name).is_dir()]
    return folder, times, frozenset(missing), tuple(page_names())


@lru_cache(maxsize=16)
def _read_all(language: str, state: State) -> tuple[tuple[tuple[Lesson, ...], tuple[str, ...]], ...]:
    """Return ``lessons`` and ``routes``."""
    folder, _times, missing, pages = state
    paths: dict[str, list[Path]] = {}
    for spoken in dict.fromkeys((language, FALLBACK)):
        for path in sorted((folder / spoken).glob("*.toml")):
            paths.setdefault(path.stem, []).append(path)
    found, problems = [], []
    for name in sorted(paths):
        for path in paths[name]:
            try:
                lesson = read_lesson(path)
                kept = tuple(step for step in lesson.steps if step.focus.get("checkpoint") not in missing)
                found.append(replace(lesson, steps=kept or lesson.steps))
                break
            except (ValueError, OSError) as error:
                problems.append(text_of(error))
    parts = {lesson.name: lesson.steps for lesson in found}
    return (tuple(found), tuple(problems)), read_routes(folder / "routes.toml", language, parts, pages)


def read_lesson(path: Path) -> Lesson:
    """Read the lesson of one file.

    Raises:
        ValueError: If it is invalid; the message names the file, the step and the field.
    """
    where = f"lessons/{path.parent.name}/{path.name}"
    if (size := path.stat().st_size) > LONGEST_FILE:
        raise MessageError(f"{where} has {size:,} bytes; a lesson has at most {LONGEST_FILE:,}")
    try:
        values = parse_toml(read_plain_text(path, LONGEST_FILE))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MessageError(f"{where} is not valid TOML: {text_of(error)}. Often a quotation mark is missing.") from None
    lesson = Fields(values, where, _LESSON_KEYS, example="")
    shared = _focus(values.get("focus", {}), f"{where}, focus")
    steps = values.get("step")
    if not isinstance(steps, list) or not steps:
        raise MessageError(f"{where} has no steps; write each under a line [[step]]")
    if len(steps) > MAX_STEPS:
        raise MessageError(f"{where} has {len(steps)} steps; a lesson has at most {MAX_STEPS}. Make two lessons of it.")
    return Lesson(
        name=path.stem,
        title=lesson.text("title"),
        aim=lesson.text("aim"),
        minutes=lesson.number("minutes", 1, MOST, "; write about how long it takes, e.g. minutes = 20"),
        steps=tuple(_step(step, shared, f"{where}, step {number}") for number, step in enumerate(steps, 1)),
    )


def _step(values: Any, shared: Mapping[str, str | int], where: str) -> Step:
    step = Fields(values, where, _STEP_KEYS, example="a step begins with a line [[step]]")
    page, pages = step.text("page"), [entry.name for group in GROUPS.values() for entry in group]
    if page not in pages:
        problem = did_you_mean(page, pages, otherwise=f"there are {', '.join(pages)}")
        raise MessageError(f"{where}: there is no page {short_repr(page)}; {problem}")
    options = values.get("options", {})
    plain = isinstance(options, dict) and all(isinstance(value, str | int | float) for value in options.values())
    step.check(plain, "options", '; write e.g. options = { decoding_section = "tree" }')
    return Step(
        page=page,
        **{name: step.text(name) for name in ("title", "do", "notice")},
        **_question(step),
        focus={**shared, **_focus(values.get("focus", {}), f"{where}, focus")},
        options=options,
        changes=_changes(step),
        figure=step.text("figure", ""),
        lights=_parts(step, "light"),
        any_sentence=step.flag("any_sentence"),
    )


def _question(step: Fields) -> dict[str, Any]:
    """Return the question, its options and what hides the answer: the named parts, or the step's figure."""
    step.refuse_without("question", (*QUESTION[1:], "cover", "open"))
    if not step.values.get("question"):
        return {}
    found = step.values.get("wrong")
    wrong = [one if isinstance(one, list) else [one, ""] for one in found] if isinstance(found, list) else []
    are_pairs = all(len(one) == 2 and all(isinstance(part, str) for part in one) and one[0] for one in wrong)
    advice = (
        "; write a list of wrong options, each a text or a text with its feedback, e.g. "
        'wrong = ["one", ["another", "Why it is wrong."]]'
    )
    step.check(wrong and are_pairs, "wrong", advice)
    answer = step.text("answer")
    if len({answer, *(option for option, _feedback in wrong)}) <= len(wrong):
        raise MessageError(f"{step.where}: two options have the same text")
    if {"cover", "open"} <= step.values.keys():
        raise MessageError(f"{step.where} has cover and open; open says why nothing is covered")
    uncovered = step.text("open", "")
    return {
        **{name: step.text(name) for name in ("question", "explanation")},
        "answer": answer,
        "hint": step.text("hint", ""),
        "wrong": tuple((option, feedback) for option, feedback in wrong),
        "covers": () if uncovered else _parts(step, "cover") or (step.text("figure", PAGE),),
        "uncovered": uncovered,
    }


def _parts(step: Fields, name: str) -> tuple[str, ...]:
    """Return the keys of parts of a page."""
    return step.texts(name, NAME.fullmatch, "; write the key of a part of the page, or several in a list")


def _changes(step: Fields) -> dict[str, tuple[str, ...]]:
    """Return the edits, the mask and the second sentence, as they are in the address."""
    advice = "; write a text in quotation marks, or several in a list"
    found = {name: step.texts(name, str.strip, advice) for name in CHANGES}
    for text in found["edit"]:
        try:
            EditSpec.parse(text)
        except ValueError as error:
            message = f"edit is {short_repr(text)}, which is not valid: {text_of(error)}"
            raise MessageError(f"{step.where}: {message}") from None
    for text in found["mask"]:
        if not _MASK.fullmatch(text):
            example = 'write e.g. mask = ["window 3", "block 2-5"]'
            raise MessageError(f"{step.where}: mask is {short_repr(text)}; {example}")
    if len(found["second"]) > 1:
        raise MessageError(f"{step.where}: `second` lists {len(found['second'])} sentences, but it takes exactly one")
    return found


def _focus(values: Any, where: str) -> dict[str, str | int]:
    """Return a location in the model, validated name by name."""
    focus, usual = Fields(values, where, PLACE, example="write e.g. focus = { layer = 1, head = 3 }"), asdict(Focus())
    for name, value in values.items():
        if isinstance(usual[name], int):
            focus.number(name, 0, MAX_PADS if name == "pads" else MOST, "; it must be an integer ≥ 0")
        else:
            focus.check(isinstance(value, str), name, "; it must be a string in quotation marks")
        if name in _ALLOWED:
            focus.check(value in _ALLOWED[name], name, f"; choose {' or '.join(_ALLOWED[name])}")
    return values


def read_routes(
    path: Path, language: str, parts: Mapping[str, tuple[Step, ...]], pages: Sequence[str]
) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """Read ``routes`` from a file; ``parts`` are the steps of each lesson."""
    try:
        found = parse_toml(read_plain_text(path, LONGEST_FILE)).get("route", [])
        if not isinstance(found, list):
            raise MessageError("a route begins with a line [[route]]")
    except FileNotFoundError:
        return (), ()
    except (OSError, ValueError) as error:
        return (), (f"{path.name} cannot be read: {text_of(error)}",)
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
    route = Fields(values, where, (*_ROUTE_KEYS, *languages()), example="a route begins with a line [[route]]")
    spoken, wanted = language if language in route.values else FALLBACK, ", not a title and an aim"
    said = route.texts(spoken, str.strip, wanted)
    route.check(len(said) == 2, spoken, wanted)
    places = [_PLACE.fullmatch(place) for place in route.texts("steps", _PLACE.fullmatch, ", not a list of steps")]
    steps = tuple(parts[place[1]][int(place[2]) - 1] for place in places)
    ends_on = route.text("ends_on", Lesson.ends_on)
    if not steps or ends_on not in pages:
        raise LookupError(f"{where} has no steps, or ends on no page")
    return Lesson(route.text("name"), *said, route.number("minutes", 1, MOST, ", not a number"), steps, ends_on)


class Fields:
    """A table of known names, whose values are read one by one.

    Args:
        values: The table as the file has it.
        where: The place, for errors: "lessons/en/03-mine.toml, step 2".
        known: All names that the table may have.
        example: What to write instead of anything that is not a table.

    Raises:
        MessageError: If it is not a table, or has an unknown name; the methods raise it for a wrong value.
    """

    def __init__(self, values: Any, where: str, known: Sequence[str], *, example: str) -> None:
        if not isinstance(values, dict):
            raise MessageError(f"{where} is {short_repr(values)}; {example}")
        for name in values:
            if name not in known:
                problem = did_you_mean(name, known, otherwise=f"known: {', '.join(known)}")
                raise MessageError(f"{where} has {short_repr(name)}; {problem}")
        self.values, self.where = values, where

    def check(self, fits: object, name: str, advice: str) -> None:
        """Raise an error about the value of ``name`` unless it ``fits``."""
        if not fits:
            raise MessageError(f"{self.where}: {name} is {short_repr(self.values.get(name))}{advice}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text, or ``default`` if it is missing; ``None`` means that it is required."""
        value = self.values.get(name, default)
        if value is None:
            raise MessageError(f"{self.where}: {name} is missing")
        if name in self.values:
            self.check(isinstance(value, str) and value.strip(), name, ", not a text")
        return value.strip()

    def texts(self, name: str, fits: Callable[[str], object], advice: str) -> tuple[str, ...]:
        """Return several texts; a single one need not be a list."""
        found = self.values.get(name, [])
        found = [found] if isinstance(found, str) else found
        is_list = isinstance(found, list) and all(isinstance(one, str) for one in found)
        self.check(is_list and all(map(fits, found)), name, advice)
        return tuple(found)

    def flag(self, name: str) -> bool:
        """Return an optional yes or no, no if it is missing."""
        self.check(isinstance(self.values.get(name, False), bool), name, "; write true or false")
        return self.values.get(name, False)

    def number(self, name: str, least: int, most: int, advice: str) -> int:
        """Return a required integer."""
        value = self.values.get(name)
        self.check(type(value) is int and least <= value <= most, name, advice)
        return value

    def refuse_without(self, name: str, others: Sequence[str]) -> None:
        """Raise an error if the table has one of ``others`` but not ``name``."""
        if not self.values.get(name) and (lonely := [other for other in others if other in self.values]):
            raise MessageError(f"{self.where} has {lonely[0]} but no {name}")
