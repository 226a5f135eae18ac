"""What the Attention page shows, chosen above its map and kept in the address: drawing, row names, cell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.attention_maps import (
    KEY_TITLE,
    attention_lines,
    attention_map,
    attention_name,
    row_title,
    title_of,
)
from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from charts.toolkit.words import _
from transformer.attention_maps.rollout import attention_rollout
from transformer.runs.attention_view import AttentionView
from transformer.text.message import N_
from transformer.variants.layer_orders import SandwichLayer
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.actions import Actions, Reveal, SelectCell, SelectToken, SetChoice
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.presentation.presenter import presenting
from ui.shell.reducer import Meaning, State
from ui.show.drawings import show_lines, show_map
from views.attention import row_guess, rows

ARITHMETIC = "attention arithmetic"  # the container beside the map
SHOW, STRETCH, KEY = "attention_show", "attention_stretch", "attention_key"
# Pixels: with everything above it, a map ends on the first screen of a projector, with one line less while presenting.
MAP_HEIGHT, PRESENTED_HEIGHT = 410, 475
SECOND_STRIP = 28  # the tokens of both sides stand above a map of cross-attention
LESSON_HEIGHT = 375  # above the bar of a lesson, with the tokens and the controls that it names


@dataclass(frozen=True)
class Shown:
    """What was chosen, and the place for a sentence about it, ``aloud``.

    ``drawing``: "map", "lines", "values" or "rollout"; ``key``: the column whose arithmetic is open, if any.
    """

    aloud: DeltaGenerator
    drawing: str
    predicted: bool
    stretch: bool
    key: int | None


def controls(p: Page, view: AttentionView) -> Shown:
    """Draw the controls."""
    labels = view.key.labels
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # One row of controls, so that the picture is on the first screen.
        drawings = ["map", "lines", "values", "rollout"]
        drawing = chosen_option(p.text, "show", drawings, key=SHOW, label_visibility="collapsed")
        predicted = rows.switch(p, view)
        row_guess.switch(p)  # off: while it is on, the page draws nothing that would give the row away
        with st.popover(p.text["more"], icon=":material/tune:", key="attention more"):
            key = choice.select(
                p.text["cell"],
                range(len(labels)),
                key=KEY,
                owner=view.key.ids,
                called={label: index for index, label in enumerate(labels)},
                format_func=partial(_called, labels),
                placeholder=p.text["cell_placeholder"],
            )
            stretch = drawing in ("map", "rollout") and choice.toggle(
                p.text["stretch"], key=STRETCH, help=p.text["stretch_help"]
            )
    return Shown(st.container(), drawing, predicted, stretch, key)


def _called(labels: Sequence[str], key: int | str) -> str:
    return labels[key] if isinstance(key, int) else key


def map_height() -> int:
    if presenting():
        return PRESENTED_HEIGHT
    return LESSON_HEIGHT if shared_focus.current().lesson else MAP_HEIGHT


def row_labels(p: Page, view: AttentionView, shown: Shown) -> tuple[str, ...]:
    """The names of the rows: the tokens that are read, or the ones that come next."""
    return rows.labels_of(p.trace, view, predicted=shown.predicted)


def draw(p: Page, view: AttentionView, shown: Shown, weighted, *, lower: int = 0) -> None:
    """The main picture; a click on a cell opens its arithmetic, a click on a token focuses it. ``weighted``: ‖α·v‖.
    ``lower``: by how many pixels, where something stands above it.
    """
    height = map_height() - lower - (SECOND_STRIP if p.focus.kind == "cross" else 0)
    labels = row_labels(p, view, shown)
    selected = None if shown.key is None else (p.focus.token, shown.key)
    if shown.drawing == "lines":
        named = replace(view, query=p.trace.prediction) if shown.predicted else view
        drawn = attention_lines(named, heads=[p.focus.head], selected_token=p.focus.token)
        titled = drawn.with_metadata(row_title=_(row_title(view, shifted=shown.predicted)))
        show_lines(titled, key="attention lines")
        return
    if shown.drawing == "rollout":
        _draw_rollout(p, view, labels, stretch=shown.stretch, height=height)
        return
    if shown.drawing == "map":
        show_map(
            attention_map(
                view,
                head=p.focus.head,
                shifted_labels=labels if shown.predicted else None,
                selected=selected,
                stretch=shown.stretch,
                chosen_row=p.focus.token,
                height=height,
                follow_pointer=True,
            ),
            key="attention map",
            means=cell_opener(shown),
        )
    else:
        show_map(
            value_map(
                weighted,
                row_labels=labels,
                column_labels=view.key.labels,
                row_title=row_title(view, shifted=shown.predicted),
                column_title=KEY_TITLE,
                scale="sequential",
                allowed=view.allowed,
                selected=selected,
                title=f"‖α·v‖ · {title_of(view, head=p.focus.head)}",
                value_name="‖α·v‖",
                phrase=("", N_(" gets from ")),
                chosen_row=p.focus.token,
                height=height,
                follow_pointer=True,
            ),
            key="attention values",
            means=cell_opener(shown),
        )
        block = p.checkpoint.model.get_submodule(f"{p.focus.stack}.layers.{p.focus.layer}")
        sandwich = p.text["show_values_sandwich"] if isinstance(block, SandwichLayer) else ""
        st.caption(f"{p.text['show_values_help']} {sandwich}")


def _draw_rollout(p: Page, view: AttentionView, labels: tuple[str, ...], *, stretch: bool, height: int) -> None:
    """All heads of all layers up to the focused one, in one map; a click focuses the token of its row."""
    found = attention_rollout(p.trace, view.stack, layer=view.layer)
    mixed = found.view(view.kind)
    show_map(
        value_map(
            mixed.weights[0],
            row_labels=labels,
            column_labels=mixed.key.labels,
            row_title=row_title(mixed, shifted=labels != mixed.query.labels),
            column_title=KEY_TITLE,
            scale="sequential",
            allowed=mixed.allowed,
            limit=None if stretch else 1.0,
            title=f"{_('rollout')} · {attention_name(view)} · {_('layers 0–{layer}, all heads', layer=view.layer)}",
            value_name=_("share"),
            phrase=("", N_(" is made of ")),
            chosen_row=p.focus.token,
            height=height,
            follow_pointer=True,
        ),
        key="attention rollout",
        means=_follow_row,
    )
    st.caption(p.text["show_rollout_help"])
    if found.source is not None and found.target is not None:
        share = found.source[p.focus.token].sum()
        st.caption(p.text["show_rollout_source"].format(share=three_digits(float(share))))


def _follow_row(_state: State, cell: SelectCell) -> Actions:
    return (SelectToken(cell.query),)


def cell_opener(shown: Shown) -> Meaning:
    """What a click on a map means: open the arithmetic of the cell, unless it is open."""
    return partial(_open_cell, shown.key)


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
