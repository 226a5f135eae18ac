"""What the desk shows of a class: rows of answers, where students are, scores; text is never markup."""

from __future__ import annotations

from dataclasses import replace

from ui.classroom import class_state as classes
from ui.classroom.class_state import SOLVED, Question, Student
from views.desk.answer_bars import answer_bars
from views.desk.class_tables import MOST_TEXTS, answer_rows, places, read_options, scores

CHOICE = Question("Which?", ("`one`", "<b>two</b>"), answer="1", answers={"ann": "1", "bob": "0", "eve": "1"})
LABELS = {
    "scores_answer": "{number}. {prompt}",
    "scores_student": "student",
    "scores_right": "right",
    "scores_of": "of",
}


def test_every_option_has_a_row_and_the_correct_one_is_marked_once_it_is_revealed() -> None:
    assert [(row.text, row.count, row.share, row.is_right) for row in answer_rows(CHOICE)] == [
        ("`one`", 1, 1 / 3, False),
        ("<b>two</b>", 2, 2 / 3, False),
    ]
    assert [row.is_right for row in answer_rows(replace(CHOICE, phase=SOLVED))] == [False, True]
    assert answer_rows(replace(CHOICE, lesson="03-one-head"))[0].text == "one", "options of lessons are Markdown"
    assert [row.share for row in answer_rows(replace(CHOICE, answers={}))] == [0, 0]


def test_the_most_frequent_texts_have_a_row() -> None:
    answers = {str(number): "mat" if number < 3 else f"text {number}" for number in range(20)}
    rows = answer_rows(Question("?", answers=answers))
    assert (rows[0].text, rows[0].count, len(rows)) == ("mat", 3, MOST_TEXTS)


def test_bars_show_text_as_it_was_written() -> None:
    bars = answer_bars(answer_rows(replace(CHOICE, phase=SOLVED)), lettered=True)
    assert "&lt;b&gt;two&lt;/b&gt;" in bars and "<b>two" not in bars
    assert "2 · 67%" in bars and "width: 66.7%" in bars and bars.count("class=right") == 1
    assert "<b>B</b>" in bars and "<b>A</b>" not in answer_bars(answer_rows(CHOICE), lettered=False)


def test_pages_are_listed_by_their_number_of_students() -> None:
    active = {"ann": Student(0, "heads"), "bob": Student(1, "masks"), "eve": Student(2, "masks")}
    assert places(active, {"heads": "Heads", "masks": "Masks"}) == [("Masks", 2), ("Heads", 1)]


def test_scores_have_a_row_per_student_and_count_known_answers() -> None:
    state = classes.new_class(now=0)
    for who in ("ann", "bob"):
        state = classes.join(state, who, now=0)
    opinion = Question("Which do you like?", ("a", "b"), answers={"ann": "0"})
    table = scores(replace(state, questions=(CHOICE, opinion)), {"ann": "Blue heron", "bob": "Red fox"}, LABELS)
    assert table.to_dict("list") == {
        "student": ["Blue heron", "Red fox"],
        "1. Which?": ["<b>two</b>", "`one`"],
        "2. Which do you like?": ["a", ""],
        "right": [1, 0],
        "of": [1, 1],
    }


def test_options_are_lines() -> None:
    assert read_options(" a \n\n b\n") == ("a", "b")
