"""Questions are fair: the order of the options, two tries, and the score."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from ui.shell.guidance.guesses import is_answered, shuffled_options
from ui.shell.guidance.lessons import ANSWER, Step, lessons

SEEDS = 300
QUESTIONS = [
    (lesson.name, number, step)
    for lesson in lessons("en")[0]
    for number, step in enumerate(lesson.steps, 1)
    if step.question
]


def test_where_the_answer_stands_depends_on_the_reader_alone() -> None:
    """Over many readers, each position is equally likely, for every question of the course."""
    for name, number, step in QUESTIONS:
        count = len(step.choices)
        places = Counter(
            shuffled_options(step, (name, number), str(seed)).index(ANSWER) for seed in range(SEEDS)
        )  # fmt: skip
        assert set(places) == set(range(count))
        deviation = 5 * (SEEDS * (count - 1) / count**2) ** 0.5
        assert all(abs(places[place] - SEEDS / count) < deviation for place in places), (name, number, places)


def test_one_reader_does_not_find_the_answer_always_in_the_same_place() -> None:
    for seed in map(str, range(20)):
        places = Counter(
            shuffled_options(step, (name, number), seed).index(ANSWER) for name, number, step in QUESTIONS
        )  # fmt: skip
        assert max(places.values()) < 0.6 * len(QUESTIONS), (seed, places)


@pytest.mark.parametrize(
    ("tries", "options", "answered"),
    [((), 3, False), ((0,), 3, True), ((1,), 3, False), ((1, 0), 3, True), ((1, 2), 4, True), ((1,), 2, True)],
)
def test_there_is_a_second_try_while_two_options_are_left(tries: tuple, options: int, answered: bool) -> None:
    wrong = tuple((str(number), "") for number in range(options - 1))
    assert is_answered(Step("tokens", "t", "d", "n", question="q", answer="a", wrong=wrong), tries) == answered


EVERY = [
    (f"{language} {lesson.name} {number}", step)
    for language in ("en", "fr")
    for lesson in lessons(language)[0]
    for number, step in enumerate(lesson.steps, 1)
]


def words(text: str) -> set[str]:
    """Return the words with a content: no short ones, all in the singular."""
    return {word.rstrip("s") for word in re.findall(r"[^\W\d_]{4,}", text.lower())} - LITTLE


LITTLE = {
    *["that", "thi", "with", "which", "them", "they", "other", "their", "pour", "dan", "avec", "plu", "leur", "cette"]
}


def test_every_wrong_option_has_its_feedback_and_no_title_names_the_answer() -> None:
    for place, step in EVERY:
        assert step.question and len(step.choices) in (3, 4), place
        feedback = [step.feedback_on(option) for option in range(1, len(step.choices))]
        assert all(feedback) and len(set(feedback)) == len(feedback) and step.hint and step.explanation, place
        assert all(len(one) <= 150 for one in feedback) and len(step.hint) <= 130, f"{place}: room in the bar"
        assert not words(step.title) & words(step.answer), f"{place}: the title names the answer"
        if step.covers:  # a reader who uses the page to find the answer may read it there
            assert step.answer.strip("`") not in re.findall(r"`([^`]*)`", step.title + step.notice), place
        for said in (*feedback, step.hint):
            assert len(step.answer) < 5 or step.answer.lower() not in said.lower(), f"{place}: “{said}” says the answer"


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("extreme", [max, min], ids=["longest", "shortest"])
def test_the_length_of_an_option_does_not_give_it_away(language: str, extreme: Callable[[list[int]], int]) -> None:
    steps = [step for lesson in lessons(language)[0] for step in lesson.steps]
    lengths = [[len(option) for option in step.choices] for step in steps]
    by_length = sum(each.count(extreme(each)) == 1 and each[ANSWER] == extreme(each) for each in lengths)
    by_chance = sum(1 / len(each) for each in lengths)
    assert by_length < 1.2 * by_chance
