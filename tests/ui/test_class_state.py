"""A class as a value: joining, questions, answers, views; and what its limits refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ui.classroom import class_state as classes
from ui.classroom.attempts import MOST, MOST_OF_ADDRESS, SECONDS, Attempts
from ui.classroom.class_state import OPEN, SHOWN, SOLVED, Class, Question

CHOICE = Question("Which?", ("one", "two", "three"), answer="1")
TEXT = Question("What comes next?", answer="mat")


def a_class(*students: str) -> Class:
    state = classes.new_class(now=0)
    for who in students:
        state = classes.join(state, who, now=0)
    return state


def test_codes_are_random_and_read_as_people_type_them() -> None:
    codes = {classes.new_class(now=0).code for _ in range(200)}
    assert len(codes) == 200
    code = codes.pop()
    assert classes.read_code(f" {code[:3].lower()}-{code[3:]} ") == code
    assert [classes.read_code(text) for text in ("", "AEIOU1", f"{code}B", "Ж" * 6, "x" * 10_000)] == [""] * 5


def test_a_student_who_joins_again_is_the_same_one() -> None:
    state = a_class("ann", "bob")
    assert classes.join(state, "ann", now=9) is state
    assert [student.number for student in state.students.values()] == [0, 1]
    gone = classes.join(classes.leave(state, "ann"), "eve", now=9)
    assert gone.students["eve"].number == 2, "a name is not given twice"


def test_a_full_class_admits_no_further_student() -> None:
    state = a_class(*map(str, range(classes.MOST_STUDENTS)))
    assert classes.join(state, "one more", now=0) is state
    assert classes.join(state, "0", now=0) is state


def test_one_network_address_cannot_fill_a_class() -> None:
    state = a_class("ann")
    for number in range(classes.MOST_STUDENTS):
        state = classes.join(state, f"program {number}", now=0, origin="one machine")
    assert len(state.students) == 1 + classes.MOST_OF_ADDRESS
    assert classes.obstacle(state, "one more", "one machine") == "full"
    assert "bob" in classes.join(state, "bob", now=0, origin="another").students


def test_who_is_removed_cannot_come_back_and_a_closed_door_keeps_strangers_out() -> None:
    state = classes.answer(classes.ask(a_class("ann", "bob"), CHOICE), "ann", 0, "1")
    state = classes.remove(state, "ann")
    assert [*state.students] == ["bob"] and not state.question.answers
    assert classes.join(state, "ann", now=0) is state and classes.obstacle(state, "ann") == "removed"
    closed = classes.close_door(state, is_closed=True)
    assert classes.join(closed, "eve", now=0) is closed and classes.obstacle(closed, "eve") == "closed"
    assert classes.join(closed, "bob", now=0) is closed and "bob" in closed.students
    assert classes.from_json(classes.to_json(closed)) == closed
    assert "eve" in classes.join(classes.close_door(closed, is_closed=False), "eve", now=0).students


def test_an_answer_counts_once_and_can_be_changed_until_it_is_solved() -> None:
    state = classes.ask(a_class("ann", "bob"), CHOICE)
    state = classes.answer(classes.answer(state, "ann", 0, "2"), "ann", 0, "1")
    state = classes.answer(state, "bob", 0, "0")
    assert classes.counts(state.question) == [("0", 1), ("1", 1), ("2", 0)]
    shown = classes.advance(state, SHOWN)
    assert classes.answer(shown, "bob", 0, "1").question.answers["bob"] == "1"
    solved = classes.advance(shown, SOLVED)
    assert classes.answer(solved, "bob", 0, "1") is solved
    assert classes.advance(solved, SHOWN) is solved, "what was shown is not hidden again"
    assert [classes.score(solved.questions, who) for who in ("ann", "bob")] == [(1, 1), (0, 1)]


@pytest.mark.parametrize(
    ("who", "number", "text"),
    [("ann", 0, "3"), ("ann", 0, "-1"), ("ann", 0, "two"), ("ann", 0, " "), ("ann", 1, "1"), ("stranger", 0, "1")],
)
def test_invalid_answers_change_nothing(who: str, number: int, text: str) -> None:
    state = classes.ask(a_class("ann"), CHOICE)
    assert classes.answer(state, who, number, text) is state
    closed = classes.stop_asking(state)
    assert classes.answer(closed, "ann", 0, "1") is closed


def test_short_texts_are_shortened_and_counted_by_frequency() -> None:
    state = classes.ask(a_class("ann", "bob", "eve"), TEXT)
    for who, text in (("ann", "  mat "), ("bob", "mat"), ("eve", "floor " * 100)):
        state = classes.answer(state, who, 0, text)
    (most, one) = classes.counts(state.question)
    assert most == ("mat", 2)
    assert len(one[0]) <= classes.LONGEST_ANSWER
    assert classes.is_right(state.question, "mat") and not classes.is_right(state.question, "floor")
    assert classes.is_right(replace(TEXT, answer=""), "mat") is None


def test_a_question_starts_without_answers_and_within_the_limits() -> None:
    old = replace(CHOICE, answers={"ann": "1"}, phase=SOLVED, prompt="x" * 10_000)
    question = classes.ask(a_class("ann"), old).question
    assert (question.answers, question.phase, len(question.prompt)) == ({}, OPEN, classes.LONGEST_PROMPT)
    for options, answer in ((("only",), ""), (tuple("abcdefg"), ""), (("a", "b"), "2")):
        with pytest.raises(ValueError, match="it must"):
            classes.ask(a_class(), Question("?", options, answer))
    state = a_class()
    assert classes.ask(classes.ask(state, TEXT), CHOICE).questions == (TEXT,), "another instructor was first"
    for _ in range(classes.MOST_QUESTIONS + 1):
        state = classes.stop_asking(classes.ask(state, TEXT))
    assert len(state.questions) == classes.MOST_QUESTIONS


def test_leaving_removes_everything_about_a_student() -> None:
    state = classes.answer(classes.ask(a_class("ann", "bob"), CHOICE), "ann", 0, "1")
    assert "ann" not in classes.to_json(classes.leave(state, "ann"))


def test_a_page_is_reported_when_it_changes_or_after_a_while() -> None:
    state = classes.see(a_class("ann"), "ann", "heads", now=1)
    assert classes.see(state, "ann", "heads", now=1 + classes.SEEN / 2) is state
    assert classes.see(state, "ann", "masks", now=2).students["ann"].page == "masks"
    later = 1 + classes.SEEN
    assert classes.see(state, "ann", "heads", now=later).students["ann"].seen == later
    assert classes.see(state, "stranger", "heads", now=2) is state
    assert list(classes.active_students(state, now=2)) == ["ann"]
    assert not classes.active_students(state, now=2 + classes.ACTIVE)


def test_views_are_counted() -> None:
    state = classes.show(classes.show(a_class(), "heads", "layer=1"), "masks", "")
    assert (state.view.number, state.view.page) == (2, "masks")
    assert classes.show(state, "masks", "x" * 10_000) is state


def test_the_instructor_prolongs_the_class_once_a_minute() -> None:
    state = classes.new_class(now=0)
    assert classes.renew(state, now=classes.RENEWED / 2) is state
    assert classes.renew(state, now=3600).expires == 3600 + classes.LIFETIME


def test_a_class_as_text_is_the_same_class() -> None:
    state = classes.answer(classes.ask(a_class("ann"), CHOICE), "ann", 0, "1")
    state = classes.show(state, "heads", "layer=1")
    assert classes.from_json(classes.to_json(state)) == state
    for wrong in ("", "[]", "{}", "null", '{"version": 1}', classes.to_json(state).replace('"joined"', '"joked"')):
        with pytest.raises(ValueError, match="not a class"):
            classes.from_json(wrong)


def test_only_the_one_who_guesses_waits() -> None:
    now = [0.0]
    attempts = Attempts(clock=lambda: now[0])
    for _ in range(MOST):
        assert attempts.is_allowed("guesser", "192.0.2.7")
        attempts.count_failure("guesser", "192.0.2.7")
    assert not attempts.is_allowed("guesser", "192.0.2.7")
    assert attempts.is_allowed("instructor", "192.0.2.7")
    attempts.count_success("instructor")
    for number in range(MOST_OF_ADDRESS):  # a program without cookies
        attempts.count_failure(f"browser {number}", "192.0.2.7")
    assert not attempts.is_allowed("another browser", "192.0.2.7")
    assert attempts.is_allowed("instructor", "192.0.2.7")
    assert attempts.is_allowed("another browser", "192.0.2.8")
    now[0] = SECONDS
    assert attempts.is_allowed("guesser", "192.0.2.7") and attempts.is_allowed("another browser", "192.0.2.7")


def test_what_is_known_of_guessers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.classroom.attempts._FORGET_FROM", 10)
    now = [0.0]
    attempts = Attempts(clock=lambda: now[0])
    for number in range(100):
        now[0] += SECONDS / 5
        attempts.count_failure(f"browser {number}", f"address {number}")
        attempts.count_success(f"browser {number}")
    assert len(attempts._failures) <= 12 and len(attempts._known) == 10
