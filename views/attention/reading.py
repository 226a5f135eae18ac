"""The map with words merged or tokens left out."""

from functools import partial

import numpy as np
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, row_title, title_of
from charts.canvas.value_map import value_map
from charts.toolkit.words import say
from transformer.attention_maps.token_groups import kept_keys, share_left_out, sink_keys, without_keys
from transformer.attention_maps.whole_words import Span, merge_into_words, spans
from transformer.text.tokens import TokenSequence
from ui.page.page import Page
from ui.shell import choice
from ui.shell.strip import choose_token
from ui.show.drawings import Cell, show_map
from ui.words.texts import listed, quoted_word
from views.attention.attention_sections import Shown, map_height

LEFT_OUT = "attention_left_out"
_NAMED = 8  # tokens that a sentence names one by one


def reading(p: Page, shown: Shown) -> None:
    """Draw the controls and the map; a click on a row focuses its first token."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        whole = p.toggle("whole_words", default=True, key="attention_whole_words")
        merged = p.calc(merge_into_words, shown.view, name="words") if whole else shown.view
        rows, columns = (_parts(tokens, whole) for tokens in (shown.view.query, shown.view.key))
        begins = {begin: label for (begin, _end), label in zip(columns, merged.key.labels, strict=True)}
        chosen = choice.several(
            p.text["left_out"], list(begins), (), key=LEFT_OUT, owner=shown.view.key.ids,
            format_func=lambda key: begins.get(key, str(key)), placeholder=p.text["left_out_placeholder"],
            max_selections=len(begins) - 1 or 1,
        )  # fmt: skip
        sinks = {begin for begin, end in columns if not set(range(begin, end)).isdisjoint(sink_keys(shown.view))}
        if sinks and len(sinks) < len(columns) and sinks != set(chosen):
            st.button(
                p.text["leave_out_sinks"], help=p.text["leave_out_sinks_help"], key="attention leave out sinks",
                on_click=choice.put, args=(LEFT_OUT, *sorted(sinks)), kwargs={"owner": shown.view.key.ids},
            )  # fmt: skip
    left_out = [index for index, begin in enumerate(begins) if begin in chosen]
    left_out = left_out if len(left_out) < len(begins) else []
    view = p.calc(without_keys, merged, left_out, name="rest") if left_out else merged
    row = next(at for at, (_begin, end) in enumerate(rows) if shown.row < end)
    labels = [merged.key.labels[column] for column in kept_keys(merged, left_out)]
    with st.container(key="attention reading"):
        figure = value_map(
            view.weights[shown.head], row_labels=view.query.labels, column_labels=labels, row_title=row_title(),
            column_title=KEY_TITLE, scale="sequential", allowed=view.allowed, limit=1.0,
            title=title_of(view, head=shown.head), phrase=("", " looks at "), chosen_row=row, height=map_height(),
            value_name=say("attention.share_what_remains") if left_out else say("attention.attention_weight"),
            follow_pointer=True,
        )  # fmt: skip
        follow = partial(_follow_word, [begin for begin, _end in rows])
        show_map(figure, key="attention words", on_click=follow)
    if (len(rows), len(columns)) != (len(shown.view.query), len(shown.view.key)):
        p.say("words_help", small=True)
    elif whole and not left_out:
        p.say("words_none", small=True)
    if left_out:
        given = p.calc(share_left_out, merged, left_out, name="given")[shown.head]
        named = [quoted_word(merged.key.labels[at]) for at in left_out[:_NAMED]]
        tokens = listed(named if len(left_out) <= _NAMED else [*named, f"… ({len(left_out)})"])
        share = {"mean": float(given.mean()), "share": float(given[row])}
        p.say("left_out_says", small=True, tokens=tokens, row=view.query.labels[row], **share)
        if empty := int((np.abs(view.weights[shown.head]).sum(axis=-1) == 0).sum()):
            p.say("left_out_empty", small=True, count=empty)


def _parts(tokens: TokenSequence, whole: bool) -> tuple[Span, ...]:
    return spans(tokens) if whole else tuple((at, at + 1) for at in range(len(tokens)))


def _follow_word(first_pieces: list[int], cell: Cell) -> None:
    choose_token(first_pieces[cell.query])
