"""The controls above the map of the Attention page, all kept in the address."""

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer.text.tokens import TokenSequence
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.focus import current
from ui.shell.guidance.way import mark_opened
from ui.shell.strip import choose_token
from ui.show.drawings import Cell
from views.attention.attention_view_model import DRAWINGS, AttentionChoices, predicts_by_default

ARITHMETIC = "attention arithmetic"  # the container next to the map
RARER = ("values", "rollout")  # drawings that are chosen under "More"
SHOW, STRETCH, KEY = "attention_show", "attention_stretch", "attention_key"


def choose(p: Page) -> tuple[AttentionChoices, DeltaGenerator]:
    """Draw the controls in one row, so that the figure and a sentence below it fit on the first screen.

    The row has the common controls, and a less common drawing while it is shown; the rest is under "More". In a lesson,
    the switch for the names of the rows stays in the row, because steps refer to it.
    """
    keys = p.trace.tokens("encoder" if p.focus.kind == "cross" else p.focus.stack)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        now = choice.read_option(SHOW, choice.names_of(p.text, "show", DRAWINGS), DRAWINGS[0])
        drawings = [name for name in DRAWINGS if name not in RARER or name == now]
        drawing = chosen_option(p.text, "show", drawings, key=SHOW, label_visibility="collapsed")
        predicted = _choose_names(p) if p.focus.lesson else False
        with st.popover(p.text["more"], icon=":material/tune:", key="attention more"):
            with st.container(horizontal=True, gap="small"):
                for name in RARER:
                    st.button(p.text[f"show_{name}"], key=f"show {name}", on_click=choice.put, args=(SHOW, name))
            predicted = predicted or (not p.focus.lesson and _choose_names(p))
            key = choose_key(p, keys)
            stretch = drawing in ("map", "rollout") and choice.toggle(
                p.text["stretch"], key=STRETCH, help=p.text["stretch_help"], default=p.reads_files
            )
    return AttentionChoices(drawing, predicted, stretch, key), st.container()


def choose_key(p: Page, keys: TokenSequence) -> int | None:
    """Draw the list of columns whose arithmetic can be opened."""
    return choice.select(
        p.text["cell"],
        range(len(keys)),
        key=KEY,
        owner=keys.ids,
        called={label: index for index, label in enumerate(keys.labels)},
        format_func=partial(_called, keys.labels),
        placeholder=p.text["cell_placeholder"],
    )


def _choose_names(p: Page) -> bool:
    """Draw the switch between the names of the rows, where they have two."""
    return p.focus.stack == "decoder" and choice.toggle(
        p.text["predicted"],
        default=predicts_by_default(p.focus.stack, p.focus.kind),
        key=_predicted_key(p),
        help=p.text["predicted_help"],
    )


def names_predictions(p: Page) -> bool:
    """Return whether rows are named after predictions, even if the switch is not drawn."""
    default = predicts_by_default(p.focus.stack, p.focus.kind)
    return p.focus.stack == "decoder" and choice.is_on(_predicted_key(p), default=default)


def _predicted_key(p: Page) -> str:
    """Return the widget's key: cross-attention has its own, so that its choice is separate."""
    return "attention_predicted_cross" if p.focus.kind == "cross" else "attention_predicted"


def _called(labels: Sequence[str], key: int | str) -> str:
    return labels[key] if isinstance(key, int) else key


def cell_opener(key: int | None) -> Callable[[Cell], None]:
    """Return the handler of a click on a map, which opens the cell's arithmetic unless it is open."""
    return partial(_open_cell, key)


def _open_cell(open_key: int | None, cell: Cell) -> None:
    if (cell.query, cell.key) != (current().token, open_key):
        choose_token(cell.query)
        open_column(cell.key)


def open_column(key: int) -> None:
    """Open the arithmetic of the focused query and this key."""
    choice.put(KEY, key)
    mark_opened(ARITHMETIC)


def close_cell() -> None:
    """Close the arithmetic: the callback of a button."""
    choice.put(KEY)
