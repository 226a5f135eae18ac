"""The map with words merged or tokens left out."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, row_title, title_of
from charts.canvas.value_map import value_map
from charts.toolkit.numbers import percent
from charts.toolkit.words import say
from transformer.attention_maps.token_groups import share_left_out, without_keys
from transformer.attention_maps.whole_words import merge_into_words
from ui.page.page import Page
from ui.shell import choice
from ui.shell.strip import choose_token
from ui.show.drawings import Cell, show_map
from ui.show.figures import show_snippet, show_source
from ui.words.texts import as_plain
from views.attention.attention_picture import map_height
from views.attention.attention_view_model import AttentionViewModel
from views.attention.map_reading import MapReading

LEFT_OUT = "attention_left_out"
_NAMED = 8  # tokens that a sentence names one by one


def reading(p: Page, shown: AttentionViewModel) -> None:
    """Draw the controls and the map."""
    shown = _choose(p, shown)
    found = shown.reading
    with st.container(key="attention reading"):
        _draw_map(p, shown, found)
    show_snippet("another reading of a map", _python(p, found))
    show_source(merge_into_words, without_keys, share_left_out)


def _choose(p: Page, shown: AttentionViewModel) -> AttentionViewModel:
    """Draw what changes the map; return the view model with it."""
    view = shown.view
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        whole = choice.toggle(p.text["whole_words"], default=True, key="attention_whole_words")
        shown = _with_reading(shown, whole_words=whole)
        found = shown.reading
        begins = {begin: label for (begin, _end), label in zip(found.key_spans, found.merged.key.labels, strict=True)}
        left_out = choice.several(
            p.text["left_out"],
            list(begins),
            (),
            key=LEFT_OUT,
            owner=view.key.ids,
            format_func=lambda key: begins.get(key, str(key)),
            placeholder=p.text["left_out_placeholder"],
            max_selections=len(begins) - 1 or 1,
        )
        shown = _with_reading(shown, left_out=tuple(left_out))
        if found.sinks and set(found.sinks) != set(left_out):
            st.button(
                p.text["leave_out_sinks"],
                help=p.text["leave_out_sinks_help"],
                key="attention leave out sinks",
                on_click=choice.put,
                args=(LEFT_OUT, *found.sinks),
                kwargs={"owner": view.key.ids},
            )
    return shown


def _with_reading(shown: AttentionViewModel, **chosen: object) -> AttentionViewModel:
    return replace(shown, choices=replace(shown.choices, reading=replace(shown.choices.reading, **chosen)))


def _draw_map(p: Page, shown: AttentionViewModel, found: MapReading) -> None:
    """Draw the map; a click on a row focuses its first token."""
    view = found.view
    show_map(
        value_map(
            view.weights[found.head],
            row_labels=view.query.labels,
            column_labels=found.key_labels,
            row_title=row_title(),
            column_title=KEY_TITLE,
            scale="sequential",
            allowed=view.allowed,
            limit=1.0,
            title=title_of(view, head=found.head),
            value_name=say("attention.share_what_remains") if found.left_out else say("attention.attention_weight"),
            phrase=("", " looks at "),
            chosen_row=found.row_of(shown.row),
            height=map_height(),
            follow_pointer=True,
        ),
        key="attention words",
        on_click=partial(_follow_word, [begin for begin, _end in found.query_spans]),
    )
    lines = []
    if found.n_pieces_merged:
        lines.append(p.text["words_help"])
    elif found.choices.whole_words and not found.left_out:
        lines.append(p.text["words_none"])
    if found.left_out:
        row = found.row_of(shown.row)
        lines.append(
            p.text["left_out_says"].format(
                tokens=_listed(found.left_out_labels),
                mean=percent(float(found.share_left_out.mean())),
                row=as_plain(view.query.labels[row]),
                share=percent(float(found.share_left_out[row])),
            )
        )
        if found.n_empty_rows:
            lines.append(p.text["left_out_empty"].format(count=found.n_empty_rows))
    st.caption(" ".join(lines))


def _listed(labels: Sequence[str]) -> str:
    named = ", ".join(say("attention.quoted_token", token=as_plain(label)) for label in labels[:_NAMED])
    return named + (f" … ({len(labels)})" if len(labels) > _NAMED else "")


def _follow_word(first_pieces: Sequence[int], cell: Cell) -> None:
    choose_token(first_pieces[cell.query])


def _python(p: Page, found: MapReading) -> str:
    view, choices = found.own, found.choices
    lines = [
        p.preamble,
        "from transformer.attention_maps.token_groups import share_left_out, without_keys",
        "from transformer.attention_maps.whole_words import merge_into_words\n",
        f"view = trace.attention({view.stack!r}, layer={view.layer}, kind={view.kind!r})",
    ]
    if choices.whole_words:
        lines.append("view = merge_into_words(view)")
    if found.left_out:
        left_out = list(found.left_out)
        lines += [f"print(share_left_out(view, {left_out})[{found.head}])", f"view = without_keys(view, {left_out})"]
    lines.append(f"print(view.weights[{found.head}].round(3))")
    return "\n".join(lines) + "\n"
