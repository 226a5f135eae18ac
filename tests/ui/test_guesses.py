"""Questions are fair: the order of the options, two tries, and the score."""

from __future__ import annotations

from collections import Counter

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
    """Over many readers, each place is equally likely, for every question of the course."""
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
