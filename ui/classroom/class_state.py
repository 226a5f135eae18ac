"""A class: what an instructor and students share, as one immutable value. No Streamlit here.

Every change is a pure function from a ``Class`` to a ``Class``; a store applies it atomically (``stores.py``). A change
that is not possible, such as an answer to a question that is closed, returns the class as it was. For each
student it holds a number, which determines an anonymous name, the current page, and the answers; all of it is deleted
with the class.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

# No vowels, so that no code is a word; no digit or letter that looks like another.
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ23456789"
CODE_LENGTH = 6
LIFETIME = 2 * 60 * 60  # seconds since the instructor was last there, after which a class expires
RENEWED = 60  # seconds between two prolongations by the instructor's page
ACTIVE = 30.0  # seconds without a report after which a student counts as away
SEEN = 10.0  # seconds between two reports that a student's page is still open
MOST_STUDENTS, MOST_QUESTIONS = 200, 60
MOST_OF_ADDRESS = 100  # students who join from one network address: one machine cannot fill a class
MOST_REMOVED = 1000  # ids that are kept out
LEAST_OPTIONS, MOST_OPTIONS = 2, 6
LONGEST_PROMPT, LONGEST_OPTION, LONGEST_ANSWER, LONGEST_VIEW = 400, 200, 40, 4000
OPEN, SHOWN, SOLVED = PHASES = ("open", "shown", "solved")
_VERSION = 2


@dataclass(frozen=True)
class Student:
    """One student of a class.

    Attributes:
        number: In order of joining, from 0.
        page: The page that is open.
        seen: Time of the last report.
        followed: Number of the instructor's view that was opened last.
        origin: A text that students with the same network address share; the address cannot be found from it.
    """

    number: int
    page: str = ""
    seen: float = 0.0
    followed: int = 0
    origin: str = ""


@dataclass(frozen=True)
class Question:
    """A question for the class.

    Attributes:
        prompt: The question, in the instructor's language if it comes from a lesson.
        options: 2 to 6 options; none for a short text.
        answer: The correct answer: the index of an option, or a text; "" if there is none.
        lesson: Name of the lesson that the question comes from, if any.
        step: Its step, from 1.
        phase: "open" while only the number of answers is shown; "shown" once the answers are shown to the instructor;
            "solved" once the correct answer is shown to everybody, and no answer can be changed.
        answers: The answer of each student, by id: the index of an option, or a text.
    """

    prompt: str
    options: tuple[str, ...] = ()
    answer: str = ""
    lesson: str = ""
    step: int = 0
    phase: str = OPEN
    answers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """A view that the instructor has opened for everybody."""

    number: int
    page: str
    address: str


@dataclass(frozen=True)
class Class:
    """A class and all that is known about it; times are in seconds since 1970.

    Attributes:
        view: The view that was opened last, if any.
        is_asking: Whether the last question is still on the students' pages.
        joined: How many students have ever joined.
        is_closed: Whether nobody else can join.
        removed: Ids of the students whom the instructor has removed, who cannot join again.
    """

    code: str
    expires: float
    view: View | None = None
    questions: tuple[Question, ...] = ()
    is_asking: bool = False
    students: Mapping[str, Student] = field(default_factory=dict)
    joined: int = 0
    is_closed: bool = False
    removed: tuple[str, ...] = ()

    @property
    def question(self) -> Question | None:
        """The question on the students' pages, if any."""
        return self.questions[-1] if self.is_asking and self.questions else None


Change = Callable[[Class], Class]


def new_class(*, now: float) -> Class:
    """Return a class with a random code and nobody in it."""
    code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
    return Class(code, expires=now + LIFETIME)


def read_code(typed: str) -> str:
    """Return the code in what was typed, without spaces and hyphens; "" if it contains none."""
    code = "".join(typed[:100].upper().replace("-", " ").split())
    return code if len(code) == CODE_LENGTH and set(code) <= set(ALPHABET) else ""


def student_id(code: str, token: str) -> str:
    """Return the id of a browser in one class; it reveals neither the browser nor its other classes."""
    return hashlib.sha256(f"{code} {token}".encode()).hexdigest()[:24]


# What a student does


def join(state: Class, who: str, *, now: float, origin: str = "") -> Class:
    """Add a student, or leave the class as it is if the student is in it or ``obstacle`` names a reason."""
    if who in state.students or obstacle(state, who, origin):
        return state
    student = Student(number=state.joined, seen=now, origin=origin)
    return replace(state, students={**state.students, who: student}, joined=state.joined + 1)


def obstacle(state: Class, who: str, origin: str = "") -> str:
    """Return why a new student cannot join: "removed", "closed", "full" or ""."""
    if who in state.removed:
        return "removed"
    if state.is_closed:
        return "closed"
    same = sum(student.origin == origin for student in state.students.values()) if origin else 0
    return "full" if len(state.students) >= MOST_STUDENTS or same >= MOST_OF_ADDRESS else ""


def leave(state: Class, who: str) -> Class:
    """Remove a student, with all answers."""
    students = {one: student for one, student in state.students.items() if one != who}
    questions = tuple(
        replace(question, answers={one: answer for one, answer in question.answers.items() if one != who})
        for question in state.questions
    )
    return replace(state, students=students, questions=questions)


def see(state: Class, who: str, page: str, *, now: float) -> Class:
    """Record that a student has a page open; at most every ``SEEN`` seconds while it stays the same."""
    student = state.students.get(who)
    if student is None or (student.page == page and now - student.seen < SEEN):
        return state
    return replace(state, students={**state.students, who: replace(student, page=page, seen=now)})


def follow(state: Class, who: str, number: int) -> Class:
    """Record that a student has opened the instructor's view, so that a reload does not open it again."""
    if who not in state.students:
        return state
    return replace(state, students={**state.students, who: replace(state.students[who], followed=number)})


def answer(state: Class, who: str, number: int, text: str) -> Class:
    """Record a student's answer to the question with this index, or replace an earlier one."""
    question = state.question
    if question is None or number != len(state.questions) - 1 or who not in state.students:
        return state
    text = " ".join(text.split())[:LONGEST_ANSWER]
    known = {str(index) for index in range(len(question.options))}
    if question.phase == SOLVED or not text or (known and text not in known):
        return state
    return _with_last(state, replace(question, answers={**question.answers, who: text}))


# What the instructor does


def renew(state: Class, *, now: float) -> Class:
    """Prolong the class, since the instructor is there; at most once a minute."""
    return state if state.expires - now > LIFETIME - RENEWED else replace(state, expires=now + LIFETIME)


def ask(state: Class, question: Question) -> Class:
    """Send a question, its texts shortened to the limits, unless another one is being asked.

    Raises:
        ValueError: If it has one option or more than six, or if its answer is none of them.
    """
    count = len(question.options)
    if count and not LEAST_OPTIONS <= count <= MOST_OPTIONS:
        raise ValueError(f"a question has {count} options; it must have {LEAST_OPTIONS} to {MOST_OPTIONS}, or none")
    if count and question.answer and question.answer not in {str(index) for index in range(count)}:
        raise ValueError(f"the answer is {question.answer!r}; it must be the index of one of {count} options")
    if state.question is not None or len(state.questions) >= MOST_QUESTIONS:
        return state
    new = replace(
        question,
        prompt=question.prompt.strip()[:LONGEST_PROMPT],
        options=tuple(option.strip()[:LONGEST_OPTION] for option in question.options),
        answer=" ".join(question.answer.split())[:LONGEST_ANSWER],
        phase=OPEN,
        answers={},
    )
    return replace(state, questions=(*state.questions, new), is_asking=True)


def advance(state: Class, phase: str) -> Class:
    """Show the answers of the last question, or its correct answer."""
    question = state.question
    if question is None or PHASES.index(phase) <= PHASES.index(question.phase):
        return state
    return _with_last(state, replace(question, phase=phase))


def stop_asking(state: Class) -> Class:
    """Remove the question from the students' pages; its answers remain."""
    return replace(state, is_asking=False)


def show(state: Class, page: str, address: str) -> Class:
    """Open a view for everybody."""
    if len(address) > LONGEST_VIEW:
        return state
    return replace(state, view=View(state.view.number + 1 if state.view else 1, page, address))


def remove(state: Class, who: str) -> Class:
    """Remove a student, with all answers, for good."""
    return replace(leave(state, who), removed=(*state.removed, who)[-MOST_REMOVED:])


def close_door(state: Class, is_closed: bool) -> Class:
    """Let nobody else join, or everybody again."""
    return replace(state, is_closed=is_closed)


def _with_last(state: Class, question: Question) -> Class:
    return replace(state, questions=(*state.questions[:-1], question))


# What the instructor reads


def active_students(state: Class, *, now: float) -> dict[str, Student]:
    """Return the students whose page is open now."""
    return {who: student for who, student in state.students.items() if now - student.seen < ACTIVE}


def counts(question: Question) -> list[tuple[str, int]]:
    """Return each option, by index, with its number of answers; or the short texts by frequency."""
    given = Counter(question.answers.values())
    if question.options:
        return [(str(index), given[str(index)]) for index in range(len(question.options))]
    return sorted(given.items(), key=lambda one: (-one[1], one[0]))


def is_right(question: Question, given: str) -> bool | None:
    """Return whether an answer is correct; ``None`` if the question has no correct answer."""
    return given == question.answer if question.answer else None


def score(questions: Sequence[Question], who: str) -> tuple[int, int]:
    """Return how many questions with a known answer a student got right, and how many there are."""
    known = [question for question in questions if question.answer]
    return sum(question.answers.get(who) == question.answer for question in known), len(known)


# As a text, for a store outside of this process


def to_json(state: Class) -> str:
    """Return a class as one text."""
    return json.dumps({"version": _VERSION, **asdict(state)}, ensure_ascii=False, separators=(",", ":"))


def from_json(text: str | bytes) -> Class:
    """Return the class of a text.

    Raises:
        ValueError: If it was written by another version, or is not a class.
    """
    try:
        values: dict[str, Any] = json.loads(text)
        if values.pop("version") != _VERSION:
            raise ValueError("another version wrote it")
        values["view"] = View(**values["view"]) if values["view"] else None
        values["students"] = {who: Student(**one) for who, one in values["students"].items()}
        values["removed"] = tuple(values.get("removed", ()))
        values["questions"] = tuple(Question(**one | {"options": tuple(one["options"])}) for one in values["questions"])
        return Class(**values)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"this is not a class: {type(error).__name__}") from None
