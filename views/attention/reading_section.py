"""The map with words merged or tokens left out, and what several tokens receive or attend to."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.attention_maps import KEY_TITLE, row_title, title_of
from charts.canvas.value_map import value_map
from charts.toolkit.numbers import percent
from charts.toolkit.words import _
from transformer.attention_maps.token_groups import share_left_out, weight_given, weight_received, without_keys
from transformer.attention_maps.whole_words import merge_into_words
from transformer.text.message import N_
from ui.shell import choice
from ui.shell.actions import Actions, SelectCell, SelectHead, SelectToken
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.reducer import State
from ui.shell.strip import choose_token
from ui.show.drawings import show_map
from ui.show.figures import show_snippet, show_source
from ui.words.texts import as_plain
from views.attention.attention_picture import map_height
from views.attention.attention_view_model import AttentionViewModel
from views.attention.map_reading import DIRECTIONS, MapReading

LEFT_OUT, TOGETHER = "attention_left_out", "attention_together"
_NAMED = 8  # tokens that a sentence names one by one


def reading(p: Page, shown: AttentionViewModel) -> None:
    """Draw the controls, the map, and the tokens taken together."""
    shown, of_sums = _choose(p, shown)
    found = shown.reading
    with st.container(key="attention reading"):
        _draw_map(p, shown, found)
        with of_sums:
            found = _choose_together(p, shown).reading
        if found.together:
            _draw_sums(p, found)
    show_snippet("another reading of a map", _python(p, found))
    show_source(merge_into_words, without_keys, share_left_out, weight_received, weight_given)


def _choose(p: Page, shown: AttentionViewModel) -> tuple[AttentionViewModel, DeltaGenerator]:
    """Draw what changes the map; return the view model with it, and the container of the other controls."""
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
    return shown, st.container()


def _choose_together(p: Page, shown: AttentionViewModel) -> AttentionViewModel:
    """Draw the choice of the tokens that are taken together; return the view model with it."""
    found = shown.reading
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        direction = chosen_option(p.text, "together", DIRECTIONS, key="attention_direction")
        if direction == "given":
            begins = {
                begin: label for (begin, _), label in zip(found.query_spans, found.view.query.labels, strict=True)
            }
        else:
            begins = {found.key_spans[k][0]: label for k, label in zip(found.kept, found.key_labels, strict=True)}
        together = choice.several(
            p.text["together_tokens"],
            list(begins),
            (),
            key=TOGETHER,
            owner=(shown.view.query.ids, shown.view.key.ids, direction),
            format_func=lambda key: begins.get(key, str(key)),
            placeholder=p.text["together_placeholder"],
        )
    return _with_reading(shown, together=tuple(together), direction=direction)


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
            value_name=_("share of what remains") if found.left_out else _("attention weight"),
            phrase=("", N_(" looks at ")),
            chosen_row=found.row_of(shown.row),
            height=map_height(),
            follow_pointer=True,
        ),
        key="attention words",
        means=partial(_follow_word, [begin for begin, _end in found.query_spans]),
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


def _draw_sums(p: Page, found: MapReading) -> None:
    """Draw the sums of all heads of the layer; a click on a row selects that head."""
    given = found.choices.direction == "given"
    labels = found.key_labels if given else found.view.query.labels
    names = _listed(found.together_labels)
    if given:
        most = [
            p.text["aloud_other"].format(label=as_plain(labels[key]), share=percent(share))
            for key, share in found.most_given
        ]
        says = p.text["given_says"].format(tokens=names, head=found.head, others=", ".join(most))
    elif found.can_be.any():
        mean, even = found.mean_received
        says = p.text["received_says"].format(
            tokens=names, head=found.head, mean=percent(mean), even=percent(even), rows=int(found.can_be.sum())
        )
    else:
        says = p.text["received_by_none"].format(tokens=names)
    st.markdown(says)
    heads = len(found.sums)
    show_map(
        value_map(
            found.sums,
            row_labels=[_("head {head}", head=head) for head in range(heads)],
            column_labels=labels,
            row_title=_("head"),
            column_title=KEY_TITLE if given else row_title(),
            scale="sequential",
            allowed=found.can_be[None].repeat(heads, axis=0),
            limit=max(1.0, float(found.sums.max())),
            title=f"{title_of(found.view)} · {p.text['together_given' if given else 'together_received']}",
            value_name=_("mean weight") if given else _("sum of weights"),
            chosen_row=found.head,
        ),
        key="attention together",
        means=partial(_follow_head, found.view.layer, () if given else [begin for begin, _ in found.query_spans]),
    )
    st.caption(p.text["given_help" if given else "received_help"])


def _listed(labels: Sequence[str]) -> str:
    named = ", ".join(_("‘{token}’", token=as_plain(label)) for label in labels[:_NAMED])
    return named + (f" … ({len(labels)})" if len(labels) > _NAMED else "")


def _follow_word(first_pieces: Sequence[int], state: State, cell: SelectCell) -> Actions:
    return choose_token(state, SelectToken(first_pieces[cell.query]))


def _follow_head(layer: int, first_pieces: Sequence[int], state: State, cell: SelectCell) -> Actions:
    head = SelectHead(layer, cell.query)
    return (head, *choose_token(state, SelectToken(first_pieces[cell.key]))) if first_pieces else (head,)


def _python(p: Page, found: MapReading) -> str:
    view, choices = found.own, found.choices
    lines = [
        p.preamble,
        "from transformer.attention_maps.token_groups import share_left_out, without_keys",
        "from transformer.attention_maps.token_groups import weight_given, weight_received",
        "from transformer.attention_maps.whole_words import merge_into_words\n",
        f"view = trace.attention({view.stack!r}, layer={view.layer}, kind={view.kind!r})",
    ]
    if choices.whole_words:
        lines.append("view = merge_into_words(view)")
    if found.left_out:
        left_out = list(found.left_out)
        lines += [f"print(share_left_out(view, {left_out})[{found.head}])", f"view = without_keys(view, {left_out})"]
    lines.append(f"print(view.weights[{found.head}].round(3))")
    if found.together:
        name = "weight_given" if choices.direction == "given" else "weight_received"
        lines.append(f"print({name}(view, {list(found.together)}).round(3))")
    return "\n".join(lines) + "\n"
