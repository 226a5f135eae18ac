"""The Attention page of a long text: an overview of the whole map, and a window that moves over it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, LOOKS_AT, attention_map, row_title, title_of
from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from charts.toolkit.words import say
from transformer.attention_maps.attention_path import AttentionPath
from transformer.runs.head_places import Head
from transformer.text.tokens import TokenSequence
from ui.page.page import Page
from ui.server.freed_memory import reuse_freed_memory
from ui.shell import choice
from ui.shell.long_texts import say_long_text
from ui.shell.strip import choose_token
from ui.show.drawings import Cell, show_map
from ui.words.texts import as_plain, token_name
from views.attention.attention_controls import ARITHMETIC, KEY, STRETCH, cell_opener, choose_key
from views.attention.attention_picture import map_height
from views.attention.attention_view_model import AttentionChoices, AttentionViewModel, attention_view_model
from views.attention.cell_arithmetic import explain_cell
from views.attention.facts import row_numbers, say_row
from views.attention.long_view_model import WINDOW, LongViewModel
from views.attention.weights_only import has_queries

BLOCK, FIND = "attention_block", "attention_find"
_STRIP_HEIGHT = 120


def show_long_text(p: Page) -> None:
    """Draw where the row attends in the whole text, the overview of all rows, and the window."""
    window, stretch = _choose(p)
    shown = window.shown
    say_row(p, shown)
    _find(p, window)
    _strip(p, window, stretch)
    beside = st.grid(3, min_column_width=270, key="attention long")
    with beside.cell(column_span=2):
        _window(p, window, stretch)
    with beside.cell():
        if shown.cell:
            with st.container(border=True, key=ARITHMETIC, gap="xsmall"):
                explain_cell(p, shown)
        _overview(p, window, stretch)
    st.caption(
        p.text["strip_caption"].format(
            row=token_name(shown.read_label),
            position=shown.row,
            share=three_digits(window.share_in_window),
            first=window.columns[0],
            last=window.columns[-1],
        )
    )
    st.caption(say_long_text(p.run, "kept", kept=p.trace.activations.n_bytes))
    with st.expander(p.text["numbers"], key="attention numbers"):
        row_numbers(p.text, shown)


def _choose(p: Page) -> tuple[LongViewModel, bool]:
    """Draw the controls in one row; return the window and whether colours are stretched."""
    tokens, text = p.trace.tokens(p.focus.stack), p.text
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        hidden = {"placeholder": text["find"], "label_visibility": "collapsed", "width": 220}
        find = choice.text(text["find"], key=FIND, owner=tokens.ids, **hidden)
        buttons = st.container(horizontal=True, gap="small", key="attention found")
        stretch = choice.toggle(text["stretch"], default=True, key=f"{STRETCH}_long", help=text["stretch_help"])
        with st.popover(text["more"], icon=":material/tune:", key="attention more"):
            window = LongViewModel(_shown(p, tokens), find=find)
            last, usual = len(window.blocks) - 1, window.key_block
            block = choice.number(text["block"], 0, last, usual, key=BLOCK, owner=tokens.ids, help=text["block_help"])
    window = replace(window, block=block)
    with buttons:
        _steps(p, window)
    return window, stretch


def _shown(p: Page, tokens: TokenSequence) -> AttentionViewModel:
    """Draw the list of cells; return the head over the whole text."""
    exposed = has_queries(p)
    choices = AttentionChoices(predicted=False, key=choose_key(p, tokens) if exposed else None)
    head = Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    with reuse_freed_memory():
        shown = attention_view_model(p.trace, head, p.focus.token, choices, weights_only=not exposed)
    p.trace.check_finite()  # the layers up to this one may have run only now
    return shown


def _steps(p: Page, window: LongViewModel) -> None:
    """Draw the buttons that move the window to what was found, and the one that makes it the row."""
    if window.neighbours is None:
        return
    for name, icon, token in zip(
        ("found_before", "found_after"),
        (":material/arrow_back:", ":material/arrow_forward:"),
        window.neighbours,
        strict=True,
    ):
        st.button(p.text[name], icon=icon, key=name, on_click=choice.put, args=(BLOCK, token // WINDOW))
    if window.found_here:
        st.button(
            p.text["follow_found"].format(token=token_name(window.tokens.labels[window.found_here[0]])),
            key="follow found",
            on_click=choose_token,
            args=(window.found_here[0],),
        )


def _find(p: Page, window: LongViewModel) -> None:
    """Write how often the text was found, and where."""
    if not window.find.strip():
        return
    places = ", ".join(f"{token}" for token in window.found_here[:8])
    template = "found" if window.found_here else "found_elsewhere" if window.found else "found_nothing"
    st.caption(p.text[template].format(find=as_plain(window.find.strip()), count=len(window.found), places=places))


def _strip(p: Page, window: LongViewModel, stretch: bool) -> None:
    shown = window.shown
    figure = value_map(
        window.strip[None],
        row_labels=(shown.read_label,),
        column_labels=window.block_labels,
        row_title=row_title(),
        column_title=p.text["blocks"].format(count=window.size),
        scale="sequential",
        allowed=window.may_attend[[window.row_block]],
        selected=(0, window.key_block),
        limit=None if stretch else 1.0,
        title=f"{p.text['strip']} · {title_of(shown.view, head=shown.location.head)}",
        value_name=say("names.share"),
        phrase=("", LOOKS_AT),
        height=_STRIP_HEIGHT,
        follow_pointer=True,
    )
    show_map(figure, key="attention strip", on_click=_move_columns)


def _overview(p: Page, window: LongViewModel, stretch: bool) -> None:
    shown = window.shown
    figure = value_map(
        window.overview,
        row_labels=window.block_labels,
        column_labels=window.block_labels,
        row_title=row_title(),
        column_title=KEY_TITLE,
        scale="sequential",
        allowed=window.may_attend,
        selected=(window.row_block, window.key_block),
        chosen_row=window.row_block,
        limit=None if stretch else 1.0,
        title=f"{p.text['overview']} · {title_of(shown.view, head=shown.location.head)}",
        value_name=p.text["largest"],
        phrase=("", LOOKS_AT),
        height=map_height(),
        follow_pointer=True,
    )
    show_map(figure, key="attention overview", on_click=partial(_move_window, len(window.tokens)))


def _window(p: Page, window: LongViewModel, stretch: bool) -> None:
    shown, rows, columns = window.shown, window.rows, window.columns
    figure = attention_map(
        window.window,
        head=shown.location.head,
        selected=window.cell,
        stretch=stretch,
        chosen_row=shown.row - rows[0],
        height=map_height(),
        follow_pointer=True,
    )
    labels = window.tokens.labels
    figure = figure.with_metadata(
        rows=[labels[token] for token in rows],
        columns=[labels[token] for token in columns],
        title=f"{figure.metadata['title']} · {rows[0]}–{rows[-1]} × {columns[0]}–{columns[-1]}",
    )
    opens = cell_opener(shown.choices.key) if isinstance(shown.path, AttentionPath) else _follow_row
    show_map(figure, key="attention map", on_click=partial(_within, rows[0], columns[0], opens))


def _move_columns(cell: Cell) -> None:
    choice.put(BLOCK, cell.key)
    choice.put(KEY)


def _move_window(n_tokens: int, cell: Cell) -> None:
    """Move both sides; the last row of a block may attend to all of its tokens."""
    choose_token(min((cell.query + 1) * WINDOW, n_tokens) - 1)
    _move_columns(cell)


def _within(row: int, column: int, on_click: Callable[[Cell], None], cell: Cell) -> None:
    on_click(Cell(cell.query + row, cell.key + column))
    choice.put(BLOCK, column // WINDOW)


def _follow_row(cell: Cell) -> None:
    choose_token(cell.query)
