"""A lesson on paper: its tasks with their figures, and the key with the answers."""

from collections.abc import Callable, Sequence

from charts.documents.document_parts import Blanks, Drawing, Exercises, Grid, Link, Paragraph, Part, Question
from ui.classroom.class_address import is_local
from ui.page.page import Page
from ui.shell.guidance.guesses import shuffled_options
from ui.shell.guidance.lessons import ANSWER, Lesson, Step
from ui.show.exports import document_of


def worksheet(
    p: Page, lesson: Lesson, *, key: bool, link: Callable[[int], str], figures: Sequence[Sequence[Part]] = ()
) -> str:
    """Return the worksheet of a lesson, or its key, as one HTML file.

    Args:
        p: The Lessons page, for its texts.
        lesson: The lesson.
        key: Whether it is the key: with the answers and without the tasks.
        link: The address of a step, counted from 1; "" if the app's address is unknown.
        figures: The parts of the figure of each step; empty for a step without one.
    """
    kind = p.words("sheet_key" if key else "sheet")
    tasks = [
        (step.title, _task(p, step, (lesson.name, number), key=key, link=link(number), figure=figure))
        for number, (step, figure) in enumerate(zip(lesson.steps, figures or [()] * len(lesson.steps), strict=True), 1)
    ]
    blanks = [] if key else [Blanks((p.words("sheet_name"), p.words("sheet_date")))]
    return document_of(
        f"{lesson.title} · {kind}",
        [Exercises(tasks)],
        heading=lesson.title,
        kicker=f"Glassformer · {kind}",
        lead=[Paragraph(lesson.aim), *blanks],
    )


def _task(
    p: Page, step: Step, place: tuple[str, int], *, key: bool, link: str, figure: Sequence[Part]
) -> Sequence[Part]:
    """Return one step; its options have the same order on all sheets, so that one key fits all."""
    code = "" if is_local(link) else p.words("sheet_code")  # a phone could not open the address
    notes = (f"**{p.text['do']}** {step.do}", f"**{p.text['notice']}** {step.notice}")
    above = [] if key else [Link(link, code), *map(Paragraph, notes)]
    if not step.question:
        return above
    order = shuffled_options(step, place, "")
    asked = Question(
        step.question,
        tuple(step.choices[option] for option in order),
        order.index(ANSWER),
        tuple("" if option == ANSWER else step.feedback_on(option) for option in order),
        step.explanation,
        solved=key,
        why=p.words("sheet_why"),
    )
    if len(figure) == 1 and isinstance(figure[0], Drawing) and figure[0].figure.metadata["kind"] == "map":
        return [*above, Grid([*figure, asked], "task")]  # beside each other, for which a grid of maps is too wide
    return [*above, *figure, asked]
