"""What a reader chooses on the Attention page above its map: drawing, row names, cell, colours; all in the address."""

from collections.abc import Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.shell import choice
from ui.shell.actions import Actions, Reveal, SelectCell, SelectToken, SetChoice
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.reducer import Meaning, State
from views.attention.attention_view_model import DRAWINGS, AttentionChoices, predicts_by_default

ARITHMETIC = "attention arithmetic"  # the container beside the map
SHOW, STRETCH, KEY, GUESS = "attention_show", "attention_stretch", "attention_key", "attention_guess"


def choose(p: Page) -> tuple[AttentionChoices, DeltaGenerator]:
    """Draw the controls in one row, so that the figure is on the first screen; room below them for a sentence."""
    keys = p.trace.tokens("encoder" if p.focus.kind == "cross" else p.focus.stack)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        drawing = chosen_option(p.text, "show", DRAWINGS, key=SHOW, label_visibility="collapsed")
        predicted = p.focus.stack == "decoder" and choice.toggle(
            p.text["predicted"],
            default=predicts_by_default(p.focus.stack, p.focus.kind),
            key=_predicted_key(p),
            help=p.text["predicted_help"],
        )
        guess_switch(p)  # off: while it is on, the page draws nothing that would give the row away
        with st.popover(p.text["more"], icon=":material/tune:", key="attention more"):
            key = choice.select(
                p.text["cell"],
                range(len(keys)),
                key=KEY,
                owner=keys.ids,
                called={label: index for index, label in enumerate(keys.labels)},
                format_func=partial(_called, keys.labels),
                placeholder=p.text["cell_placeholder"],
            )
            stretch = drawing in ("map", "rollout") and choice.toggle(
                p.text["stretch"], key=STRETCH, help=p.text["stretch_help"]
            )
    return AttentionChoices(drawing, predicted, stretch, key), st.container()


def choices_while_guessing(p: Page) -> AttentionChoices:
    """What was chosen, where "Predict, then reveal" leaves no control but its own: how the rows are named."""
    default = predicts_by_default(p.focus.stack, p.focus.kind)
    return AttentionChoices(predicted=choice.is_on(_predicted_key(p), default=default))


def guess_switch(p: Page) -> bool:
    """Draw the toggle of "Predict, then reveal"; in the address, so that a teacher's link begins with the question."""
    return choice.toggle(p.text["guess"], key=GUESS, help=p.text["guess_help"])


def _predicted_key(p: Page) -> str:
    """Keys of their own, so that a choice for one kind of attention is none for the other."""
    return "attention_predicted_cross" if p.focus.kind == "cross" else "attention_predicted"


def _called(labels: Sequence[str], key: int | str) -> str:
    return labels[key] if isinstance(key, int) else key


def cell_opener(key: int | None) -> Meaning:
    """What a click on a map means: open the arithmetic of the cell, unless it is open (``key``: its column)."""
    return partial(_open_cell, key)


def _open_cell(open_key: int | None, state: State, cell: SelectCell) -> Actions:
    if (cell.query, cell.key) == (state.focus.token, open_key):
        return ()
    return SelectToken(cell.query), *open_column(cell.key)


def open_column(key: int) -> Actions:
    """What opens the arithmetic of the focused query and this key."""
    return SetChoice(KEY, (key,)), Reveal(ARITHMETIC)


def close_cell() -> None:
    """A button's callback: choose no cell."""
    choice.put(KEY)
