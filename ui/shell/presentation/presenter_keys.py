"""Presenting without the mouse: keys that move what is looked at, from page to page or step to step of a lesson, full
screen, and out again. The browser does the counting; Python hears of a key only where something changes."""

from collections.abc import Sequence
from pathlib import Path

from ui.shell import focus as shared_focus
from ui.shell.events import component, heard, whole_number
from ui.shell.focus import Focus
from ui.shell.guidance.lesson_bar import open_step
from ui.shell.guidance.lessons import Lesson
from ui.shell.navigation import go_to, pages
from ui.shell.presentation.presenter import presenting
from ui.words.texts import common

_KEY = "presenter keys"
_component = component("presenter_keys", Path(__file__).with_name("presenter_keys.js"))
# What a key may be bound to, in the order in which it is given away.
_ACROSS, _DOWN = ("token", "head"), ("layer",)


def presenter_keys(
    page: str, focus: Focus, lesson: Lesson | None, *, needs: Sequence[str], counts: dict[str, int], steps: bool
) -> None:
    """One small line with the keys, while somebody presents; it follows them, too.

    ``counts``: of the layers, heads and tokens that there are. ``steps``: the page has a stepper of its own, which
    moves by ← and →.
    """
    if not presenting():
        return
    places = {name: [getattr(focus, name), counts[name]] for name in ("token", "head", "layer") if name in needs}
    result = _component(
        key=_KEY,
        data=keys_data(places, turn=_turn(page, focus, lesson), steps=steps, plays=page == "overview"),
        on_move_change=_moved,
    )
    if isinstance(result.move, dict) and result.move.get("what") == "turn":
        _go(page, focus, lesson, 1 if result.move.get("to") == 1 else -1)


def keys_data(places: dict[str, list[int]], *, turn: list[bool], steps: bool, plays: bool = False) -> dict:
    """What the component draws and knows: ``bound`` gives each key what it moves, ``turn`` whether there is a page
    before and after. ``plays``: the keys that turn pages first go through the steps of the page's picture."""
    across = [name for name in _ACROSS if name in places and places[name][1] > 1]
    keys = {"plain": "steps" if steps else across.pop(0) if across else "", "shift": across[0] if across else ""}
    keys["down"] = next((name for name in _DOWN if name in places and places[name][1] > 1), "")
    words = {name: common(f"presenter.{name}") for name in (*keys.values(), "turn", "full", "dark", "leave") if name}
    if plays:
        words["turn"] = common("presenter.play_and_turn")
    return {"places": places, "keys": keys, "turn": turn, "words": words}


def _order() -> list[str]:
    return list(pages())


def _turn(page: str, focus: Focus, lesson: Lesson | None) -> list[bool]:
    """Whether there is one before and one after: of the lesson's steps while one runs, else of the pages."""
    if lesson:
        return [focus.lesson_step > 1, focus.lesson_step < len(lesson.steps)]
    place = _order().index(page)
    return [place > 0, place < len(_order()) - 1]


def _go(page: str, focus: Focus, lesson: Lesson | None, by: int) -> None:
    if not _turn(page, focus, lesson)[by > 0]:
        return
    if lesson:
        open_step(lesson, focus.lesson_step + by)
    go_to(_order()[_order().index(page) + by])


def _moved() -> None:
    """Before the page runs: the focus is where the keys went. What does not fit, the page corrects and says."""
    move = heard(_KEY, "move")
    if not isinstance(move, dict):
        return
    what, to = move.get("what"), whole_number(move.get("to"))
    if what == "leave":
        shared_focus.change(presenter=0)
    elif what in ("token", "head", "layer") and to is not None:
        shared_focus.change(**{what: to})
