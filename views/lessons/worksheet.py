"""Printable worksheets, and their answer keys: one HTML file each that needs nothing else.

Made from a lesson, or from a link to any view of the app. Whatever a person may have typed is escaped; of Markdown only
``code``, **bold** and *italic* are understood.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from urllib.parse import parse_qsl, urlencode, urlsplit

from charts.documents.markup import Paragraph, document, marked
from transformer.errors import MessageError
from ui.shell.guidance.lessons import Lesson
from ui.shell.outer_page import PAGE, outer_page

LONGEST_LINK = 20_000
_LINES = 3  # to write on, where there is nothing to tick


@dataclass(frozen=True)
class Exercise:
    """One thing to do. ``notes``: Markdown, one paragraph each; ``right``: the place of the right one of ``choices``
    from 0, ``None`` where the answer is written. ``answer`` is for the key only. ``link`` opens the view.
    ``figure``: what the question is about, as HTML of our own."""

    title: str = ""
    notes: tuple[str, ...] = ()
    question: str = ""
    choices: tuple[str, ...] = ()
    right: int | None = None
    answer: str = ""
    link: str = ""
    figure: str = ""


@dataclass(frozen=True)
class Sheet:
    """``facts``: what stands above the exercises, pairs of a name and plain text. ``link`` opens what it is about."""

    title: str
    aim: str
    exercises: tuple[Exercise, ...]
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())
    link: str = ""


def lesson_sheet(lesson: Lesson, *, text: Mapping[str, str], link: Callable[[int], str]) -> Sheet:
    """A lesson on paper; ``link(number)`` is the address of a step, counted from 1."""
    return Sheet(
        title=lesson.title,
        aim=lesson.aim,
        exercises=tuple(
            Exercise(
                title=step.title,
                notes=(f"**{text['do']}** {step.do}", f"**{text['notice']}** {step.notice}"),
                question=step.question,
                choices=step.choices,
                right=step.answer if step.question else None,
                answer=step.explanation,
                link=link(number),
            )
            for number, step in enumerate(lesson.steps, 1)
        ),
    )


def with_figures(sheet: Sheet, figures: Sequence[str]) -> Sheet:
    """The sheet with the HTML of a figure at each exercise, "" for none."""
    exercises = (replace(each, figure=figure) for each, figure in zip(sheet.exercises, figures, strict=True))
    return replace(sheet, exercises=tuple(exercises))


def link_to(base: str, path: str, address: Mapping[str, str]) -> str:
    """The address of a page with these parameters; "" where the app's own address, ``base``, is not known."""
    if not base:
        return ""
    return f"{base.rstrip('/')}/{path}?{urlencode(address)}"


def read_link(link: str, *, pages: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Which page a link opens, and its parameters. ``pages``: names by the last part of their address.

    Raises ``ValueError`` with a sentence for the person who pasted it.
    """
    link = link.strip()
    if len(link) > LONGEST_LINK:
        raise MessageError(
            "This link has {length} characters; links of this app have at most {most}.",
            length=len(link),
            most=LONGEST_LINK,
        )
    try:
        parts = urlsplit(link)
    except ValueError:
        parts = urlsplit("")
    parameters = dict(parse_qsl(parts.query))
    around = parts._replace(query="", fragment="").geturl() == outer_page()
    path = parameters.pop(PAGE, "") if around else parts.path.rstrip("/").rpartition("/")[2]
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise MessageError("This is not a link: copy the whole address of a page of this app, with http:// in front.")
    if path not in pages:
        raise MessageError(
            "There is no page {name} in this app; it has {pages}.",
            name=repr(path),
            pages=", ".join(sorted(pages.values())),
        )
    return pages[path], parameters


def as_html(sheet: Sheet, *, key: bool, text: Mapping[str, str], language: str = "en", figure: str = "") -> str:
    """The whole file: the worksheet, or with ``key`` its answers. ``figure``: HTML of our own, below the facts."""
    kind = text["sheet_key" if key else "sheet"]
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in sheet.facts)
    head = (
        "" if key else f'<p class="who">{escape(text["sheet_name"])} <i></i> {escape(text["sheet_date"])} <i></i></p>'
    )
    body = "".join(_exercise(exercise, key=key, why=escape(text["sheet_why"])) for exercise in sheet.exercises)
    return document(
        f"{sheet.title} · {kind}",
        f"<header><p>Glassformer · {escape(kind)}</p><h1>{marked(sheet.title)}</h1>"
        f"<p>{marked(sheet.aim)}</p>{head}</header>\n"
        f"{f'<dl>{facts}</dl>' if facts else ''}{_link(sheet.link)}{_paragraphs(sheet.notes)}"
        f"{f'<figure>{figure}</figure>' if figure else ''}<ol>\n{body}</ol>",
        paper=True,
        language=language,
    )


def _exercise(exercise: Exercise, *, key: bool, why: str) -> str:
    title = f"<h2>{marked(exercise.title)}</h2>" if exercise.title else ""
    above = title + ("" if key else _link(exercise.link) + _paragraphs(exercise.notes))
    if not exercise.question:
        return f"<li>{above}</li>\n"
    question = f'<p class="question">{marked(exercise.question)}</p>'
    asked = f"{question}{_choices(exercise, key=key)}{_answer(exercise, key=key, why=why)}"
    if exercise.figure:
        asked = f'<div class="task"><figure>{exercise.figure}</figure><div>{asked}</div></div>'
    return f"<li>{above}{asked}</li>\n"


def _choices(exercise: Exercise, *, key: bool) -> str:
    rows = []
    for place, choice in enumerate(exercise.choices):
        is_right = key and place == exercise.right
        rows.append(f"<li>{'☒' if is_right else '☐'} {f'<b>{marked(choice)}</b>' if is_right else marked(choice)}</li>")
    return f"<ul>{''.join(rows)}</ul>" if rows else ""


def _answer(exercise: Exercise, *, key: bool, why: str) -> str:
    if key:
        return f'<p class="answer">{marked(exercise.answer)}</p>'
    if exercise.choices:
        return f'<div class="line">{why}</div>'
    return '<div class="line"></div>' * _LINES


def _link(link: str) -> str:
    if urlsplit(link).scheme not in ("http", "https"):
        return ""
    return f'<p class="link"><a href="{escape(link)}">{escape(link)}</a></p>'


def _paragraphs(notes: Sequence[str]) -> str:
    return "".join(Paragraph(note).html() for note in notes)
