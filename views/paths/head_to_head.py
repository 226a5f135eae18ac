"""The Paths page: which earlier heads tell the chosen one, by path patching."""

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from transformer.interventions.activation_patching import Contrast
from transformer.interventions.path_patching import INPUTS, path_patching, senders_of
from transformer.runs.head_places import Head
from ui.shell.actions import Actions, OpenPage, SelectCell, SelectLocation
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.reducer import State
from ui.show.drawings import show_map
from ui.show.figures import show_snippet, show_source
from ui.words.texts import as_plain
from views.paths.patching import chosen_contrast, display, measured, turn_in_python

_HEIGHT = 250  # px: with the three rows of controls above it, the map ends on the first screen of a projector
_WAYS = {"all": INPUTS, **{name: (name,) for name in INPUTS}}


def head_to_head(p: Page, room: DeltaGenerator) -> None:
    """Choose, in ``room``, the word; the head that hears is the focused one; see what each head before tells it."""
    sentence, both, turn = chosen_contrast(p, room)
    focus = p.focus
    receiver = Head(focus.stack, focus.kind, focus.layer, focus.head)
    way = chosen_option(p.text, "ear", list(_WAYS), key="paths_ear", help=p.text["ear_help"])
    senders = senders_of(both, receiver)
    name = _name(p, receiver)
    if not senders:
        st.info(p.text["edges_first"].format(head=as_plain(name)), icon=":material/info:")
        _offer_later(p, both)
        p.finish()
    shares = measured(
        p,
        both,
        turn,
        ("path patching", sentence, turn.row, turn.other, receiver, way),
        lambda report: path_patching(both, turn, receiver, senders, inputs=_WAYS[way], progress=report),
        count=len(senders),
    )
    if shares is not None:
        _map(p, senders, shares, name, answer=display(both, turn.answer))
    st.caption(p.text["edges_source"])
    show_snippet(
        "head to head",
        f"{p.preamble}\nfrom transformer.runs.head_places import Head\n"
        "from transformer.interventions import activation_patching as patching\n"
        "from transformer.interventions.path_patching import path_patching, senders_of\n\n"
        f"contrast = patching.contrast(trace, {sentence!r})\n"
        f'receiver = Head("{receiver.stack}", "{receiver.kind}", {receiver.layer}, {receiver.head})\n'
        f"turn = {turn_in_python(both, turn)}\n"
        f"shares = path_patching(contrast, turn, receiver, inputs={_WAYS[way]})\n"
        "for sender, share in zip(senders_of(contrast, receiver), shares):\n"
        "    print(sender, share)\n",
    )
    show_source(path_patching)


def _offer_later(p: Page, both: Contrast) -> None:
    """The same head of the model's last attention, if other heads come before that."""
    stack, kind = p.trace.attention_kinds()[-1]
    head = min(p.focus.head, p.checkpoint.config.heads_in(stack) - 1)
    last = Head(stack, kind, p.trace.n_layers(stack) - 1, head)
    if senders_of(both, last) and st.button(p.text["edges_later"].format(head=as_plain(_name(p, last)))):
        p.set_focus(**last._asdict())


def _map(p: Page, senders: tuple[Head, ...], shares: np.ndarray, receiver: str, *, answer: str) -> None:
    """A row for each layer of each kind of attention; a click opens the sender."""
    text = p.text
    rows = list(dict.fromkeys((head.stack, head.kind, head.layer) for head in senders))
    values = np.full((len(rows), 1 + max(head.head for head in senders)), np.nan)
    for head, share in zip(senders, shares, strict=True):
        values[rows.index(head[:3]), head.head] = share
    known = np.isfinite(values)
    told = {head for head, share in zip(senders, shares, strict=True) if np.isfinite(share)}
    if not known.any():
        st.caption(text["no_gap_caption"])
        return
    labels = [text["edge_row"].format(what=text[f"from_{stack}_{kind}"], layer=layer) for stack, kind, layer in rows]
    best = int(np.nanargmax(np.abs(shares)))
    st.markdown(
        text["edges_says"].format(
            sender=as_plain(_name(p, senders[best])),
            receiver=as_plain(receiver),
            share=three_digits(float(shares[best])),
            answer=as_plain(answer),
        )
    )
    show_map(
        value_map(
            np.where(known, values, 0.0),
            row_labels=labels,
            column_labels=[str(head) for head in range(values.shape[1])],
            row_title=text["rows_title"],
            column_title=text["columns_heads"],
            allowed=known,
            title=text["edges_map"].format(receiver=receiver),
            value_name=text["map_value"],
            phrase=(text["edges_phrase"], text["phrase_heads"]),
            height=_HEIGHT,
            masked_text=text["no_gap"],
        ),
        key="path patching",
        means=partial(_open, rows, told),
    )


def _open(rows: Sequence[tuple[str, str, int]], senders: Collection[Head], _state: State, cell: SelectCell) -> Actions:
    sender = Head(*rows[cell.query], cell.key)
    return (OpenPage("attention", SelectLocation(*rows[cell.query], cell.key)),) if sender in senders else ()


def _name(p: Page, head: Head) -> str:
    return p.text[f"head_{head.stack}_{head.kind}"].format(layer=head.layer, head=head.head)
