"""A student's answers in this session, as a file to hand in; the server does not store them."""

from collections.abc import Mapping, Sequence

import streamlit as st

from charts.documents.document_parts import Blanks, Paragraph, Part, Table
from ui.page.page import Page
from ui.shell.guidance.guesses import MOST_TRIES, Guess, Score, answered_questions, score_of
from ui.shell.guidance.lessons import ANSWER, Lesson
from ui.show.documents import document_of
from ui.words import texts
from ui.words.texts import unmarked


def offer_results(p: Page, found: Sequence[Lesson]) -> None:
    """Offer the results of all lessons in which a question was answered, if there are any."""
    answered = [(lesson, score_of(lesson), answered_questions(lesson)) for lesson in found]
    answered = [one for one in answered if one[1].answered]
    if not answered:
        return
    text, language = p.text, texts.language()

    def file() -> bytes:
        with texts.use_language(language):  # the file is generated outside the session's run
            return results(answered, text=text).encode("utf-8", errors="replace")

    st.subheader(p.text["results"], anchor=False)
    st.markdown(p.text["results_text"])
    st.download_button(
        p.text["results_download"],
        data=file,
        file_name="glassformer-results.html",
        mime="text/html",
        icon=":material/assignment_turned_in:",
        key="results",
        on_click="ignore",
    )


def results(answered: Sequence[tuple[Lesson, Score, Sequence[Guess]]], *, text: Mapping[str, str]) -> str:
    """Write the file: the score of each lesson, then every question with the options that were chosen."""
    scores = [(lesson.title, score.answered, score.first, score.in_the_end) for lesson, score, _ in answered]
    headings = [text[f"results_{name}"] for name in ("lesson", "answered", "first", "in_the_end")]
    parts: list[Part] = [Table(headings, scores)]
    for lesson, _score, guesses in answered:
        columns = [text["results_task"], *(text[f"results_try_{number}"] for number in range(1, MOST_TRIES + 1))]
        parts += [Paragraph(f"**{lesson.title}**"), Table(columns, [_row(guess) for guess in guesses])]
    return document_of(
        text["results"],
        parts,
        heading=text["results"],
        kicker="Glassformer",
        lead=[Blanks((text["sheet_name"], text["sheet_date"]))],
    )


def _row(guess: Guess) -> tuple[str, ...]:
    """Return the question and the options that were chosen, each marked as correct or wrong."""
    marked = [f"{'✓' if option == ANSWER else '✗'} {unmarked(guess.step.choices[option])}" for option in guess.tries]
    padding = [""] * (MOST_TRIES - len(marked))
    return (f"{guess.number}. {unmarked(guess.step.question)}", *marked, *padding)
