"""Lessons as instructors write them: ``lessons/<language>/<number>-<name>.toml``, read and validated.

A file has ``title``, ``aim``, ``minutes``, optionally a table ``focus`` for all its steps, and a ``[[step]]`` per step.
``lessons/README.md`` explains it to instructors.
"""

import re
import tomllib
from collections.abc import Mapping
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
from ui.shell.guidance.lesson_fields import Fields
from ui.shell.guidance.regions import NAME, PAGE
from ui.shell.navigation import GROUPS
from ui.words.once_a_run import once_a_run

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


def lessons(language: str = FALLBACK, *, folder: Path | None = None) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """Return all lessons in one language, and a sentence for every file that cannot be read.

    A lesson without a valid translation is returned in English. Steps about a checkpoint that only the repository has
    are left out in the installed program.
    """
    folder = folder or LESSONS
    return _lessons(folder, language, state_of(folder))


@once_a_run
def state_of(folder: Path) -> tuple[frozenset[str], frozenset[tuple[str, int]]]:
    """Return the checkpoints that are missing, and the files of a folder of lessons with their times.

    Lessons are read again only after it has changed.
    """
    missing = frozenset([name for name in IN_THE_REPOSITORY if not (REPOSITORY / "checkpoints" / name).is_dir()])
    files = [path for path in folder.rglob("*.toml") if path.exists()]  # a link may lead nowhere
    return missing, frozenset([(str(path), path.stat().st_mtime_ns) for path in files])


@lru_cache(maxsize=16)
def _lessons(
    folder: Path, language: str, state: tuple[frozenset[str], frozenset[tuple[str, int]]]
) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    missing, _files = state
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
