"""Printable worksheets of lessons, and their answer keys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from charts.documents.document_parts import Blanks, Drawing, Exercises, Grid, Link, Paragraph, Part, Question
from ui.server.network_address import is_local
from ui.shell.guidance.guesses import shuffled_options
from ui.shell.guidance.lessons import ANSWER, Lesson, Step
from ui.show.documents import document_of


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    ``notes``: Markdown, one paragraph each. ``right``: index of the correct one of ``choices``, ``None`` for an
    open question. ``answer`` is for the key only, and so is ``feedback``, one text for each of ``choices``. ``link``
    opens the view, ``figure`` is what the question is about.
    """

    title: str = ""
    notes: tuple[str, ...] = ()
    question: str = ""
    choices: tuple[str, ...] = ()
    right: int | None = None
    feedback: tuple[str, ...] = ()
    answer: str = ""
    link: str = ""
    figure: Sequence[Part] = ()


@dataclass(frozen=True)
class Sheet:
    """Exercises under a title and an aim."""

    title: str
    aim: str
    exercises: tuple[Exercise, ...]


def lesson_sheet(lesson: Lesson, *, text: Mapping[str, str], link: Callable[[int], str]) -> Sheet:
    """Return a printable lesson; ``link(number)`` is the address of a step, counted from 1."""
    exercises = (
        _exercise(step, (lesson.name, number), text=text, link=link(number))
        for number, step in enumerate(lesson.steps, 1)
    )
    return Sheet(title=lesson.title, aim=lesson.aim, exercises=tuple(exercises))


def _exercise(step: Step, place: tuple[str, int], *, text: Mapping[str, str], link: str) -> Exercise:
    """Return a printable step; its options have the same order on all sheets, so that one key fits all."""
    order = shuffled_options(step, place, "")
    return Exercise(
        title=step.title,
        notes=(f"**{text['do']}** {step.do}", f"**{text['notice']}** {step.notice}"),
        question=step.question,
        choices=tuple(step.choices[option] for option in order),
        right=order.index(ANSWER) if step.question else None,
        feedback=tuple("" if option == ANSWER else step.feedback_on(option) for option in order),
        answer=step.explanation,
        link=link,
    )


def with_figures(sheet: Sheet, figures: Sequence[Sequence[Part]]) -> Sheet:
    """Return the sheet with a figure for each exercise; an empty figure means none."""
    exercises = (replace(each, figure=figure) for each, figure in zip(sheet.exercises, figures, strict=True))
    return replace(sheet, exercises=tuple(exercises))


def link_to(base: str, path: str, address: Mapping[str, str]) -> str:
    """Return the address of a page with these parameters; "" if the app's address is unknown."""
    if not base:
        return ""
    return f"{base.rstrip('/')}/{path}?{urlencode(address)}"


def worksheet(sheet: Sheet, *, key: bool, text: Mapping[str, str]) -> str:
    """Write the whole file: the worksheet, or with ``key`` its answers."""
    kind = text["sheet_key" if key else "sheet"]
    code = text["sheet_code"]
    blanks = [] if key else [Blanks((text["sheet_name"], text["sheet_date"]))]
    exercises = [
        (exercise.title, _parts(exercise, key=key, code=code, why=text["sheet_why"])) for exercise in sheet.exercises
    ]
    return document_of(
        f"{sheet.title} · {kind}",
        [Exercises(exercises)],
        heading=sheet.title,
        kicker=f"Glassformer · {kind}",
        lead=[Paragraph(sheet.aim), *blanks],
    )


def _link(link: str, code: str) -> Link:
    """Return a link with a QR code unless a phone could not open it."""
    return Link(link, "" if is_local(link) else code)


def _parts(exercise: Exercise, *, key: bool, code: str, why: str) -> list[Part]:
    above: list[Part] = [] if key else [_link(exercise.link, code), *map(Paragraph, exercise.notes)]
    if not exercise.question:
        return above
    asked = Question(
        exercise.question, exercise.choices, exercise.right, exercise.feedback, exercise.answer, solved=key, why=why
    )
    if not exercise.figure:
        return [*above, asked]
    beside = len(exercise.figure) == 1 and isinstance(exercise.figure[0], Drawing) and _is_narrow(exercise.figure[0])
    return [*above, Grid([*exercise.figure, asked], "task")] if beside else [*above, *exercise.figure, asked]


def _is_narrow(drawing: Drawing) -> bool:
    """Return whether the question fits next to the figure: true for one map, not for a grid."""
    return drawing.figure.metadata["kind"] == "map"
