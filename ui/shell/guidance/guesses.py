"""Guesses at the questions of lessons: the order of the options, the tries, and the score.

The options of a question are shuffled, in the same order whenever a browser shows them. After a wrong guess there is a
hint and one more try; the score counts the first try. Guesses are kept in memory only: in the session, and for a page
that is loaded again with the same browser's cookie.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import streamlit as st

from ui.server.streamlit_private import browser_token
from ui.shell.guidance.lessons import ANSWER, Lesson, Step

MOST_TRIES = 2
_GUESSES, _SHOWN = "lesson: guesses", "lesson: shown without a guess"
MOST_BROWSERS = 1000
Place = tuple[str, int]  # name of a lesson and number of its step, from 1
Tries = dict[Place, tuple[int, ...]]
_by_browser: OrderedDict[str, Tries] = OrderedDict()  # by the browser's cookie, the oldest first


@dataclass(frozen=True)
class Score:
    """How many questions were answered, and how many correctly: on the first try, and in the end."""

    answered: int
    first: int
    in_the_end: int


@dataclass(frozen=True)
class Guess:
    """An answered question; ``tries`` are the indices of the chosen options in ``step.choices``, in order."""

    number: int
    step: Step
    tries: tuple[int, ...]


def shuffled_options(step: Step, place: Place, seed: str) -> tuple[int, ...]:
    """Return the indices of all options in the order in which the browser with this ``seed`` shows them."""
    order = list(range(len(step.choices)))
    Random(f"{seed} {place[0]} {place[1]}").shuffle(order)
    return tuple(order)


def remaining_options(step: Step, place: Place) -> tuple[int, ...]:
    """Return the options that this visitor has not tried yet, in the visitor's order."""
    tried = tries_at(place)
    return tuple(one for one in shuffled_options(step, place, browser_token()) if one not in tried)


def tries_at(place: Place) -> tuple[int, ...]:
    """Return the options that were chosen at this step, in order."""
    return _all_tries().get(place, ())


def is_answered(step: Step, tries: Sequence[int]) -> bool:
    """Return whether the answer is shown: after a correct guess or the last try.

    There is no second try if only one option would be left.
    """
    return bool(tries) and (tries[-1] == ANSWER or len(tries) == MOST_TRIES or len(step.choices) - len(tries) == 1)


def add_guess(name: str, number: int, option: int | None) -> None:
    """Record one try; ``None`` means that nothing has been chosen yet."""
    if option is not None:
        _keep({**_all_tries(), (name, number): (*tries_at((name, number)), option)})


def answered_questions(lesson: Lesson) -> tuple[Guess, ...]:
    """Return the questions of a lesson with at least one try, whether the answer was shown or not."""
    found = ((number, step, tries_at((lesson.name, number))) for number, step in enumerate(lesson.steps, 1))
    return tuple(Guess(number, step, tries) for number, step, tries in found if tries)


def score_of(lesson: Lesson) -> Score:
    """Return the score of this session."""
    found = answered_questions(lesson)
    return Score(
        answered=len(found),
        first=sum(one.tries[0] == ANSWER for one in found),
        in_the_end=sum(one.tries[-1] == ANSWER for one in found),
    )


def forget_guesses(name: str) -> None:
    """Forget the guesses of a lesson, so that it can be taken again."""
    _keep({place: tries for place, tries in _all_tries().items() if place[0] != name})
    st.session_state[_SHOWN] = {place for place in _uncovered() if place[0] != name}


def uncover(name: str, number: int) -> None:
    """Show the covered parts of a step before the guess."""
    st.session_state[_SHOWN] = _uncovered() | {(name, number)}


def is_covered(step: Step, place: Place) -> bool:
    """Return whether parts are still hidden: until the first guess, or until the reader asks."""
    return bool(step.covers) and not tries_at(place) and place not in _uncovered()


def _all_tries() -> Tries:
    if _GUESSES not in st.session_state:  # a new session: perhaps the page was loaded again
        st.session_state[_GUESSES] = _by_browser.get(browser_token(), {})
    return st.session_state[_GUESSES]


def _keep(tries: Tries) -> None:
    st.session_state[_GUESSES] = tries
    if token := browser_token():
        _by_browser[token] = tries
        _by_browser.move_to_end(token)
        while len(_by_browser) > MOST_BROWSERS:
            _by_browser.popitem(last=False)


def _uncovered() -> set[Place]:
    return st.session_state.get(_SHOWN, set())
