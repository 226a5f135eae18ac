"""The Attention page of a long text: an overview of the whole map, and a window that moves over it."""

from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, LOOKS_AT, attention_map, row_title, title_of
from charts.canvas.value_map import value_map
from charts.toolkit.words import say
from transformer.attention_maps.text_blocks import (
    SIZE,
    block_of_interest,
    blocks_of,
    find_text,
    largest_weights,
    may_attend,
    shares_of_blocks,
    window_of,
)
from ui.page.page import Page
from ui.server.freed_memory import reuse_freed_memory
from ui.shell import choice
from ui.shell.sentence_notes import say_long_text
from ui.shell.strip import choose_token
from ui.show.drawings import Cell, show_map
from views.attention.attention_sections import (
    ARITHMETIC,
    KEY,
    STRETCH,
    Shown,
    cell_opener,
    choose_key,
    claim,
    follow_row,
    layer,
    map_height,
    one_head,
    queries,
    row_numbers,
)
from views.attention.one_cell import arithmetic

BLOCK, FIND = "attention_block", "attention_find"
_STRIP_HEIGHT = 120
_PLACES = 8  # positions of what was found that are written out


def show_long_text(p: Page) -> None:
    """Draw where the row attends in the whole text, the overview of all rows, and the window."""
    with reuse_freed_memory():
        view = layer(p)
    p.trace.check_finite()  # the layers up to this one may have run only now
    tokens, head, row, text = view.key, p.focus.head, p.focus.token, p.text
    blocks, exposed, key = blocks_of(len(tokens)), queries(p) in p.trace, None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        hidden = {"placeholder": text["find"], "label_visibility": "collapsed", "width": 220}
        wanted = choice.text(text["find"], key=FIND, owner=tokens.ids, **hidden)
        buttons = st.container(horizontal=True, gap="small", key="attention found")
        help = text["stretch_help"]
        stretch = choice.toggle(text["stretch"], default=True, key=f"{STRETCH}_long", help=help)
        with st.popover(text["more"], icon=":material/tune:", key="attention more"):
            if exposed:
                key = choose_key(p, tokens)
            usual = block_of_interest(view, head, row)
            how = {"key": BLOCK, "owner": tokens.ids, "help": text["block_help"]}
            block = choice.number(text["block"], 0, len(blocks) - 1, usual, **how)
    rows, columns = blocks[row // SIZE], blocks[block]
    with buttons:
        found = _find(p, wanted, columns, tokens)
    shown = Shown(view, one_head(view, head), head, row, "map", False, view.query.labels, stretch, key)
    claim(p, shown)
    if wanted.strip():
        here = [token for token in found if token in columns]
        name = "found" if here else "found_elsewhere" if found else "found_nothing"
        p.say(name, small=True, find=wanted.strip(), count=len(found), places=", ".join(map(str, here[:_PLACES])))
    shares = p.calc(shares_of_blocks, view, head, row, name="shares")
    allowed = p.calc(may_attend, view, name="allowed")
    where = (row // SIZE, block)
    _draw_blocks(
        p, shown, "strip", shares[None], [view.query.labels[row]], on_click=_move_columns, allowed=allowed[[where[0]]],
        selected=(0, block), value_name=say("names.share"), column_title=p.md("blocks", count=SIZE),
        height=_STRIP_HEIGHT,
    )  # fmt: skip
    beside = st.grid(3, min_column_width=270, key="attention long")
    with beside.cell(column_span=2):
        _window(p, shown, rows, columns)
    with beside.cell():
        if shown.cell:
            with st.container(border=True, key=ARITHMETIC, gap="xsmall"):
                arithmetic(p, shown)
        _draw_blocks(
            p, shown, "overview", p.calc(largest_weights, view, head, name="overview"), _names(blocks),
            on_click=partial(_move_window, len(tokens)), allowed=allowed, selected=where, chosen_row=where[0],
            value_name=text["largest"], column_title=KEY_TITLE, height=map_height(),
        )  # fmt: skip
    part = {"first": columns[0], "last": columns[-1], "share": float(shares[block])}
    p.say("strip_caption", small=True, row=view.query.labels[row], position=row, **part)
    st.caption(say_long_text(p.run, "kept", kept=p.trace.activations.n_bytes))
    with st.expander(text["numbers"], key="attention numbers"):
        row_numbers(p, shown)
    p.code()


def _names(blocks: tuple[range, ...]) -> list[str]:
    return [f"{block[0]}–{block[-1]}" if len(block) > 1 else f"{block[0]}" for block in blocks]


def _find(p: Page, wanted: str, columns: range, tokens) -> tuple[int, ...]:
    """Return where the ``wanted`` text occurs; draw buttons that move the window there or select its row."""
    found = find_text(tokens, wanted)
    if not found:
        return ()
    before = [token for token in found if token < columns[0]] or found  # around the ends of the text
    after = [token for token in found if token > columns[-1]] or found
    for name, icon, token in (("found_before", "arrow_back", before[-1]), ("found_after", "arrow_forward", after[0])):
        block = token // SIZE
        st.button(p.text[name], icon=f":material/{icon}:", key=name, on_click=choice.put, args=(BLOCK, block))
    here = next((token for token in found if token in columns), None)
    if here is not None:
        label = p.md("follow_found", token=tokens.labels[here])
        st.button(label, key="follow found", on_click=choose_token, args=(here,))
    return found


def _draw_blocks(
    p: Page, shown: Shown, name: str, values: np.ndarray, rows: list[str], *, on_click: Callable, **more: object
) -> None:
    """Draw the strip of one row or the overview of all, one cell per block."""
    figure = value_map(
        values, row_labels=rows, column_labels=_names(blocks_of(len(shown.view.key))), row_title=row_title(),
        scale="sequential", limit=None if shown.stretch else 1.0, phrase=("", LOOKS_AT), follow_pointer=True,
        title=f"{p.text[name]} · {title_of(shown.view, head=shown.head)}", **more,
    )  # fmt: skip
    show_map(figure, key=f"attention {name}", on_click=on_click)


def _window(p: Page, shown: Shown, rows: range, columns: range) -> None:
    window, cell = window_of(shown.view, rows, columns), shown.cell
    selected = (cell[0] - rows[0], cell[1] - columns[0]) if cell and cell[1] in columns else None
    figure = attention_map(
        window, head=shown.head, selected=selected, stretch=shown.stretch, chosen_row=shown.row - rows[0],
        height=map_height(), follow_pointer=True,
    )  # fmt: skip
    labels = shown.view.key.labels
    figure = figure.with_metadata(
        rows=[labels[token] for token in rows],
        columns=[labels[token] for token in columns],
        title=f"{figure.metadata['title']} · {rows[0]}–{rows[-1]} × {columns[0]}–{columns[-1]}",
    )
    opens = cell_opener(shown.key) if queries(p) in p.trace else follow_row
    show_map(figure, key="attention map", on_click=partial(_within, rows[0], columns[0], opens))


def _move_columns(cell: Cell) -> None:
    choice.put(BLOCK, cell.key)
    choice.put(KEY)


def _move_window(n_tokens: int, cell: Cell) -> None:
    """Move both sides; the last row of a block may attend to all of its tokens."""
    choose_token(min((cell.query + 1) * SIZE, n_tokens) - 1)
    _move_columns(cell)


def _within(row: int, column: int, on_click: Callable[[Cell], None], cell: Cell) -> None:
    on_click(Cell(cell.query + row, cell.key + column))
    choice.put(BLOCK, column // SIZE)
