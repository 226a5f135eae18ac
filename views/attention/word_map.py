"""The Attention page: the focused head between whole words, whose pieces are put together."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, row_title, title_of
from charts.canvas.value_map import value_map
from charts.toolkit.words import _
from transformer.attention_maps.whole_words import in_words, spans
from transformer.runs.attention_view import AttentionView
from transformer.text.message import N_
from ui.shell.actions import Actions, SelectCell, SelectToken
from ui.shell.page import Page
from ui.shell.reducer import State
from ui.show.drawings import show_map
from ui.show.figures import show_snippet, show_source
from views.attention.attention_controls import map_height


def words(p: Page, view: AttentionView) -> None:
    """One row and one column a word; a click on a row focuses the word's first piece."""
    together = in_words(view)
    parts = spans(view.query)
    show_map(
        value_map(
            together.weights[p.focus.head],
            row_labels=together.query.labels,
            column_labels=together.key.labels,
            row_title=row_title(view),
            column_title=KEY_TITLE,
            scale="sequential",
            allowed=together.allowed,
            limit=1.0,
            title=title_of(view, head=p.focus.head),
            value_name=_("attention weight"),
            phrase=("", N_(" looks at ")),
            chosen_row=next(row for row, (_begin, end) in enumerate(parts) if p.focus.token < end),
            height=map_height(),
        ),
        key="attention words",
        means=partial(_follow_word, [begin for begin, _end in parts]),
    )
    pieces = len(view.query) + len(view.key) - len(together.query) - len(together.key)
    st.caption(p.text["words_help" if pieces else "words_none"])
    show_snippet(
        "attention in words",
        f"{p.preamble}\nfrom transformer.attention_maps.whole_words import in_words\n\n"
        f"view = trace.attention({view.stack!r}, layer={view.layer}, kind={view.kind!r})\n"
        f"print(in_words(view).weights[{p.focus.head}].round(3))\n",
    )
    show_source(in_words, spans)


def _follow_word(first_pieces: Sequence[int], _state: State, cell: SelectCell) -> Actions:
    return (SelectToken(first_pieces[cell.query]),)
