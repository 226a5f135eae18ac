"""Lessons as instructors write them: ``lessons/<language>/<number>-<name>.toml``, read and validated.

A file has ``title``, ``aim``, ``minutes``, optionally a table ``focus`` for all its steps, and a ``[[step]]`` per step.
``lessons/README.md`` explains it to instructors.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformer.disk.plain_files import parse_toml, read_plain_text
from transformer.errors import MessageError, text_of
from transformer.runs.attention_view import KINDS
from transformer.runs.traces import STACKS
from transformer.text.message import did_you_mean, short_repr
from ui.compute.loading import IN_THE_REPOSITORY, REPOSITORY
from ui.shell.focus import MAX_PADS, Focus
from ui.shell.guidance import lesson_fields as fields
from ui.shell.guidance.lesson_fields import CHANGES, QUESTION
from ui.shell.navigation import GROUPS

LESSONS = REPOSITORY / "lessons"
FALLBACK = "en"
LONGEST_FILE = 200_000  # bytes
MAX_STEPS = 40
PLACE = ("checkpoint", "sentence", "target", "stack", "kind", "layer", "head", "token", "pads")
ANSWER = 0  # index of the answer in ``choices``
_STEP_KEYS = (
    *("page", "title", "do", "notice", "focus", "options", "figure", "cover", "open", "light", "any_sentence"),
    *QUESTION,
    *CHANGES,
)
_LESSON_KEYS = ("title", "aim", "minutes", "focus", "step")
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
        uncovered: Why there are none, if the question is answered by using the page.
        lights: Keys of the controls that the step names.
        any_sentence: Whether its texts hold for every sentence, so that it is shown with the reader's own.
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


def read_lesson(path: Path) -> Lesson:
    """Read the lesson of one file.

    Raises:
        ValueError: If it is invalid; the message names the file, the step and the field.
    """
    return _read(path, path.stat().st_mtime_ns)


def lessons(language: str = FALLBACK, *, folder: Path | None = None) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """Return all lessons in one language, and a sentence for every file that cannot be read.

    A lesson without a valid translation is returned in English. Steps about a checkpoint that only the repository has
    are left out in the installed program.
    """
    folder = folder or LESSONS
    missing = [name for name in IN_THE_REPOSITORY if not (REPOSITORY / "checkpoints" / name).is_dir()]
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
    return tuple(found), tuple(problems)


def find_lesson(name: str, language: str = FALLBACK, *, folder: Path | None = None) -> Lesson | None:
    """Return the lesson of that name, ``None`` if there is none that can be read.

    A lesson that got another number since a link was copied is found by the rest of its name.
    """
    found = lessons(language, folder=folder)[0]
    exact = next((lesson for lesson in found if lesson.name == name), None)
    rest = name.partition("-")[2]
    return exact or next((lesson for lesson in found if rest and lesson.name.partition("-")[2] == rest), None)


@lru_cache(maxsize=128)
def _read(path: Path, _changed: int) -> Lesson:
    where = f"lessons/{path.parent.name}/{path.name}"
    if (size := path.stat().st_size) > LONGEST_FILE:
        raise MessageError(f"{where} has {size:,} bytes; a lesson has at most {LONGEST_FILE:,}")
    try:
        values = parse_toml(read_plain_text(path, LONGEST_FILE))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MessageError(f"{where} is not valid TOML: {text_of(error)}. Often a quotation mark is missing.") from None
    fields.check_known(values, _LESSON_KEYS, where)
    shared = _focus(values.get("focus", {}), f"{where}, focus")
    steps = values.get("step")
    if not isinstance(steps, list) or not steps:
        raise MessageError(f"{where} has no steps; write each under a line [[step]]")
    if len(steps) > MAX_STEPS:
        raise MessageError(f"{where} has {len(steps)} steps; a lesson has at most {MAX_STEPS}. Make two lessons of it.")
    return Lesson(
        name=path.stem,
        title=fields.text(values, "title", where),
        aim=fields.text(values, "aim", where),
        minutes=fields.minutes(values, where),
        steps=tuple(_step(step, shared, f"{where}, step {number}") for number, step in enumerate(steps, 1)),
    )


def _step(values: Any, shared: Mapping[str, str | int], where: str) -> Step:
    if not isinstance(values, dict):
        raise MessageError(f"{where} is {short_repr(values)}; a step begins with a line [[step]]")
    fields.check_known(values, _STEP_KEYS, where)
    page = fields.text(values, "page", where)
    pages = [entry.name for group in GROUPS.values() for entry in group]
    if page not in pages:
        problem = did_you_mean(page, pages, otherwise=f"there are {', '.join(pages)}")
        raise MessageError(f"{where}: there is no page {short_repr(page)}; {problem}")
    options = values.get("options", {})
    if not isinstance(options, dict) or not all(isinstance(value, str | int | float) for value in options.values()):
        raise MessageError(
            f'{where}: options is {short_repr(options)}; write e.g. options = {{ decoding_section = "tree" }}'
        )
    return Step(
        page=page,
        **{name: fields.text(values, name, where) for name in ("title", "do", "notice")},
        **fields.question(values, where),
        focus={**shared, **_focus(values.get("focus", {}), f"{where}, focus")},
        options=options,
        changes={name: fields.changes(values, name, where) for name in CHANGES},
        figure=fields.text(values, "figure", where) if "figure" in values else "",
        **fields.covered_parts(values, where),
        lights=fields.parts(values, "light", where),
        any_sentence=fields.flag(values, "any_sentence", where),
    )


def _focus(values: Any, where: str) -> dict[str, str | int]:
    """Return a location in the model, validated name by name."""
    if not isinstance(values, dict):
        raise MessageError(f"{where} is {short_repr(values)}; write e.g. focus = {{ layer = 1, head = 3 }}")
    fields.check_known(values, PLACE, where)
    usual = asdict(Focus())
    for name, value in values.items():
        if isinstance(usual[name], int):
            most = MAX_PADS if name == "pads" else 10**6
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
                raise MessageError(f"{where}: {name} is {short_repr(value)}; it must be an integer ≥ 0")
        elif not isinstance(value, str):
            raise MessageError(f"{where}: {name} is {short_repr(value)}; it must be a string in quotation marks")
        elif name in _ALLOWED and value not in _ALLOWED[name]:
            one, two = _ALLOWED[name]
            raise MessageError(f"{where}: {name} is {short_repr(value)}; choose {one} or {two}")
    return values
