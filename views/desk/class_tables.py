"""What the desk shows of a class, as values: answers in rows, where the students are, and scores."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ui.classroom.class_state import SOLVED, Class, Question, Student, counts, is_right, score
from ui.words.texts import unmarked

MOST_TEXTS = 10  # different short texts that are shown


@dataclass(frozen=True)
class AnswerRow:
    """One option or text, with its number and share of answers; ``is_right`` once that is revealed."""

    text: str
    count: int
    share: float
    is_right: bool


def answer_rows(question: Question) -> tuple[AnswerRow, ...]:
    """Return a row for each option, in order, or for each of the most frequent texts."""
    total = len(question.answers)
    return tuple(
        AnswerRow(
            shown_text(question, given),
            count,
            count / total if total else 0.0,
            question.phase == SOLVED and bool(is_right(question, given)),
        )
        for given, count in counts(question)[: None if question.options else MOST_TEXTS]
    )


def shown_text(question: Question, given: str) -> str:
    """Return an answer as plain text; options of lessons are Markdown."""
    if not question.options:
        return given
    option = question.options[int(given)]
    return unmarked(option) if question.lesson else option


def places(active: Mapping[str, Student], titles: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return the title of each page with its number of students, most first."""
    found = Counter(titles.get(student.page, student.page) for student in active.values())
    return sorted(found.items(), key=lambda one: (-one[1], one[0]))


def scores(state: Class, names: Mapping[str, str], text: Mapping[str, str]) -> pd.DataFrame:
    """Return a row for each student: every answer, then the number of correct ones, and of how many."""
    prompts = [
        text["scores_answer"].format(number=number, prompt=question.prompt)
        for number, question in enumerate(state.questions, 1)
    ]
    columns = [text["scores_student"], *prompts, text["scores_right"], text["scores_of"]]
    return pd.DataFrame([_row(state.questions, who, names[who]) for who in state.students], columns=columns)


def _row(questions: Sequence[Question], who: str, name: str) -> tuple[object, ...]:
    given = [shown_text(one, one.answers[who]) if who in one.answers else "" for one in questions]
    return (name, *given, *score(questions, who))


def read_options(typed: str) -> tuple[str, ...]:
    """Return the options in a text, one per line."""
    return tuple(line.strip() for line in typed.splitlines() if line.strip())
