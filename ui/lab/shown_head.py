"""The head on a page that compares two runs: the one whose maps differ most, or the reader's choice."""

from transformer.runs.head_places import Head
from ui.page.page import Page
from ui.shell import choice
from ui.shell.fitting import fit_model
from ui.shell.focus import PLACE, Focus, default_focus, opening_focus, select
from ui.show.drawings import Cell
from ui.words.texts import common

KEY = "shown_head"
MOST, CHOSEN = "most", "chosen"


def is_chosen(p: Page) -> bool:
    """Return whether the page shows the sidebar's head, which it does once the reader has chosen one."""
    return choice.read_option(KEY, _names(), _first(p)) == CHOSEN


def choose_head(p: Page) -> None:
    """Draw the control: the head that differs most, or the sidebar's."""
    choice.one_of(common("shown_head.label"), _names(), _first(p), key=KEY, label_visibility="collapsed")


def location(p: Page) -> Head | None:
    """Return the head that the reader chose; ``None`` for the one that differs most."""
    focus = p.focus
    return Head(focus.stack, focus.kind, focus.layer, focus.head) if is_chosen(p) else None


def select_head(cell: Cell) -> None:
    """Show the head whose cell was clicked on a map of all heads."""
    select(layer=cell.query, head=cell.key)
    choice.put(KEY, CHOSEN)


def _names() -> dict[str, list[str]]:
    return {name: [common(f"shown_head.{name}")] for name in (MOST, CHOSEN)}


def _first(p: Page) -> str:
    """Return the default: the head that differs most, until the reader has chosen one on any page."""
    config, name = p.checkpoint.config, p.focus.checkpoint
    untouched = {_place(fit_model(focus, config)[0]) for focus in (opening_focus(name), default_focus(name))}
    return MOST if _place(p.focus) in untouched else CHOSEN


def _place(focus: Focus) -> tuple[object, ...]:
    return tuple(getattr(focus, name) for name in PLACE)
