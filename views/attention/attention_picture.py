"""The figures of one head: the map, and its row on the image of a vision model."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.attention_maps import (
    KEY_TITLE,
    attention_lines,
    attention_map,
    attention_name,
    patch_pictures,
    row_title,
    title_of,
)
from charts.canvas.figure import CanvasFigure
from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from charts.toolkit.words import localize, say
from transformer.attention_maps.attention_path import AttentionPath
from transformer.guests.described_layers import SandwichLayer
from transformer.runs.attention_view import AttentionView
from ui.page.page import Page
from ui.shell import focus as shared_focus
from ui.shell.picture import picture_address
from ui.shell.presentation.presenter import is_presenting
from ui.shell.strip import choose_token
from ui.show.drawings import Cell, show_lines, show_map
from ui.show.figures import show_figure
from ui.words.texts import as_plain
from views.attention.attention_controls import cell_opener
from views.attention.attention_row_figures import row_on_picture
from views.attention.attention_view_model import AttentionViewModel
from views.attention.shaded import height_above

# Pixels: a map and everything above it fit on the first screen of a projector; one line less while presenting.
MAP_HEIGHT, PRESENTED_HEIGHT = 410, 525
SECOND_STRIP = 28  # the tokens of both sides are above a map of cross-attention
ONE_LINE = 14  # tokens in one line of a strip
LESSON_HEIGHT = 375  # leaves space for a lesson's bar, the tokens, and the controls that the lesson names
_PRESENTED = Path(__file__).with_name("attention_presented.css")


@dataclass(frozen=True)
class Places:
    """The containers of the map, the sentence in its colours, the arithmetic of a cell, and the numbers."""

    sentence: DeltaGenerator
    picture: DeltaGenerator
    beside: DeltaGenerator
    numbers: DeltaGenerator


def places(shown: AttentionViewModel) -> Places:
    """Return the containers around a map.

    Beside it is the arithmetic if a cell is open, otherwise the sentence (of an image, before the map) and the numbers,
    unless the map is wide: then the sentence is above it, and the numbers are below. An open cell moves the sentence
    below the map, so that map and arithmetic fit into the window.
    """
    cell = shown.cell is not None
    above = st.empty() if cell else st.container()
    if shown.is_wide and not cell:
        return Places(above, st.container(), st.empty(), st.container())
    both = st.grid(3, min_column_width=270 if cell else 205, key="attention picture")
    if shown.view.key.patches and not cell:  # the row on the image itself comes first, then the map
        beside, picture = both.cell(), both.cell(column_span=2)
        return Places(beside.container(), picture, beside, beside.container())
    picture, beside = both.cell(column_span=2), both.cell()
    if cell:
        return Places(st.container(), picture, beside, st.container())
    return Places(beside.container(), picture, beside, beside.container())


def map_height() -> int:
    """Return the height of a map in pixels on a projector."""
    if is_presenting():
        return PRESENTED_HEIGHT
    return LESSON_HEIGHT if shared_focus.current().lesson else MAP_HEIGHT


def draw(p: Page, shown: AttentionViewModel) -> None:
    """Draw the main figure; a click on a cell opens its arithmetic, a click on a token focuses it."""
    height = map_height()
    has_strip = not is_presenting() or bool(p.focus.lesson)
    if not has_strip:  # a lesson may ask about it
        st.html(_PRESENTED)
    if shown.view.kind == "cross" and has_strip:  # two strips of tokens, which take two lines each if there are many
        height -= SECOND_STRIP * (3 if len(shown.view.key.labels) > ONE_LINE else 1)
    if shown.is_wide and shown.cell is None:
        height -= height_above(shown.view)
    draw_as = {"map": _weights, "lines": _lines, "values": _values, "rollout": _rollout}[shown.choices.drawing]
    draw_as(p, shown, height)


def _weights(p: Page, shown: AttentionViewModel, height: int) -> None:
    figure = attention_map(
        shown.view,
        head=shown.location.head,
        shifted_labels=shown.row_labels if shown.names_predictions else None,
        selected=shown.cell,
        stretch=shown.choices.stretch,
        chosen_row=shown.row,
        height=height,
        follow_pointer=True,
    )
    on_click = cell_opener(shown.choices.key) if isinstance(shown.path, AttentionPath) else _follow_row
    show_map(figure, key="attention map", on_click=on_click)


def _lines(p: Page, shown: AttentionViewModel, height: int) -> None:
    named = replace(shown.view, query=shown.row_tokens)
    drawn = attention_lines(named, heads=[shown.location.head], selected_token=shown.row)
    title = row_title(shifted=shown.names_predictions)
    show_lines(drawn.with_metadata(row_title=localize(title)), key="attention lines")


def _values(p: Page, shown: AttentionViewModel, height: int) -> None:
    """Draw ‖α·v‖."""
    figure = _value_map(
        shown,
        shown.value_weighted,
        allowed=shown.view.allowed,
        selected=shown.cell,
        title=f"‖α·v‖ · {title_of(shown.view, head=shown.location.head)}",
        value_name="‖α·v‖",
        phrase=("", " gets from "),
        height=height,
    )
    show_map(figure, key="attention values", on_click=cell_opener(shown.choices.key))
    block = p.checkpoint.model.get_submodule(f"{shown.view.stack}.layers.{shown.view.layer}")
    sandwich = p.text["show_values_sandwich"] if isinstance(block, SandwichLayer) else ""
    st.caption(f"{p.text['show_values_help']} {sandwich}")


def _rollout(p: Page, shown: AttentionViewModel, height: int) -> None:
    """Draw all heads of all layers up to the focused one in one map; a click focuses the token of its row."""
    figure = _value_map(
        shown,
        shown.drawn.weights[0],
        allowed=shown.drawn.allowed,
        limit=None if shown.choices.stretch else 1.0,
        title=" · ".join(
            (say("names.rollout"), attention_name(shown.view), say("attention.layers_up_to", layer=shown.view.layer))
        ),
        value_name=say("names.share"),
        phrase=("", " is made of "),
        height=height,
    )
    show_map(figure, key="attention rollout", on_click=_follow_row)
    st.caption(p.text["show_rollout_help"])
    if shown.rollout.source is not None and shown.rollout.target is not None:
        share = shown.rollout.source[shown.row].sum()
        st.caption(p.text["show_rollout_source"].format(share=three_digits(float(share))))


def _value_map(shown: AttentionViewModel, values: np.ndarray, **more: object) -> CanvasFigure:
    return value_map(
        values,
        row_labels=shown.row_labels,
        column_labels=shown.view.key.labels,
        row_title=row_title(shifted=shown.names_predictions),
        column_title=KEY_TITLE,
        scale="sequential",
        chosen_row=shown.row,
        follow_pointer=True,
        **more,
    ).with_metadata(**patch_pictures(shown.view.query, shown.view.key))


def _follow_row(cell: Cell) -> None:
    choose_token(cell.query)


def on_picture(p: Page, shown: AttentionViewModel) -> None:
    """Draw one figure per head with the weight of each patch, and those of other tokens above it."""
    view, row, across = shown.view, shown.row, p.checkpoint.tokenizer.per_row
    weights = view.weights[:, row]
    patches = [token.index for token in view.key if not token.special]
    show_figure(
        row_on_picture(
            weights[:, patches].reshape(len(weights), -1, across),
            picture=picture_address(p.sentence, p.checkpoint.config),
            names=[_name_of_panel(view, head, row) for head in range(len(weights))],
            labels=[view.key.labels[place] for place in patches],
            stretch=shown.choices.stretch,
        ),
        name="row-on-picture",
        caption=p.text["picture_caption"].format(row=as_plain(view.query.labels[row]), layer=view.layer),
        alt=p.text["picture_alt"],
    )


def _name_of_panel(view: AttentionView, head: int, row: int) -> str:
    """Return "head 2: [CLS] 0.13, others 0.4" (registers): what the patches of the figure do not show."""
    special = [token for token in view.key if token.special]
    if not special:
        return say("names.numbered_head", head=head)
    first, *others = (float(view.weights[head, row, token.index]) for token in special)
    share, token = three_digits(first), special[0].display
    if not others:
        return say("attention.head_share", head=head, share=share, token=token)
    rest = three_digits(sum(others))
    return say("attention.head_shares", head=head, share=share, token=token, rest=rest)
