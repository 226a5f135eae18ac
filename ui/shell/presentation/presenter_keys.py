"""Keyboard control for presentations: move the focus, turn pages or lesson steps, full screen.

The browser knows the limits, so Python receives a key only if it changes something.
"""

from collections.abc import Sequence
from pathlib import Path

from ui.shell import focus as shared_focus
from ui.shell.events import component, heard, measure, whole_number
from ui.shell.focus import Focus
from ui.shell.guidance.lesson_bar import open_step
from ui.shell.guidance.lessons import Lesson
from ui.shell.navigation import go_to, pages
from ui.shell.presentation.presenter import is_presenting, keep_scale, scale
from ui.words.texts import common

_KEY = "presenter keys"
_component = component("presenter_keys", Path(__file__).with_name("presenter_keys.js"))
# What a key may control, in order of preference.
_ACROSS, _DOWN = ("token", "head"), ("layer",)


def presenter_keys(
    page: str, focus: Focus, lesson: Lesson | None, *, needs: Sequence[str], counts: dict[str, int], steps: bool
) -> None:
    """Draw a button that lists the keys during a presentation, and handle them.

    ``counts`` are the numbers of layers, heads and tokens. ``steps`` says that the page has its own stepper, which uses
    ← and →.
    """
    if not is_presenting():
        return
    places = {name: [getattr(focus, name), counts[name]] for name in ("token", "head", "layer") if name in needs}
    result = _component(
        key=_KEY,
        data=keys_data(places, turn=_turn(page, focus, lesson), steps=steps, plays=page == "overview")
        | {"scale": scale()},
        on_move_change=_apply_keys,
        on_scale_change=_apply_scale,
    )
    if isinstance(result.move, dict) and result.move.get("what") == "turn":
        _go(page, focus, lesson, 1 if result.move.get("to") == 1 else -1)


def keys_data(places: dict[str, list[int]], *, turn: list[bool], steps: bool, plays: bool = False) -> dict:
    """Return the component's data: ``bound`` maps keys to what they move, ``turn`` to existing pages.

    If ``plays``, the keys for previous and next page move through the steps of the page's figure first.
    """
    across = [name for name in _ACROSS if name in places and places[name][1] > 1]
    keys = {"plain": "steps" if steps else across.pop(0) if across else "", "shift": across[0] if across else ""}
    keys["down"] = next((name for name in _DOWN if name in places and places[name][1] > 1), "")
    named = (*filter(None, keys.values()), "turn", "full", "dark", "leave", "keys")
    words = {name: common(f"presenter.{name}") for name in named}
    if plays:
        words["turn"] = common("presenter.play_and_turn")
    return {"places": places, "keys": keys, "turn": turn, "words": words}


def _order() -> list[str]:
    return list(pages())


def _turn(page: str, focus: Focus, lesson: Lesson | None) -> list[bool]:
    """Return whether there is a previous and a next lesson step, or page if no lesson is open."""
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


def _apply_scale() -> None:
    """Keep the scale of the presenter's screen, from 1 to 2."""
    keep_scale(measure(heard(_KEY, "scale"), 1.0, least=1.0, most=2.0))


def _apply_keys() -> None:
    """Apply the keys to the focus before the page runs; the page corrects and reports what does not fit."""
    move = heard(_KEY, "move")
    if not isinstance(move, dict):
        return
    what, to = move.get("what"), whole_number(move.get("to"))
    if what == "leave":
        shared_focus.change(presenter=0)
    elif what in ("token", "head", "layer") and to is not None:
        shared_focus.change(**{what: to})
