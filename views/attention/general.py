"""This head in general, without a sentence: what it prefers to look at, what it writes, and which heads it reads."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from charts.toolkit.words import _
from transformer.heads.head_circuits import (
    WAYS,
    Circuit,
    Composition,
    composition,
    output_value_circuit,
    query_key_circuit,
)
from transformer.runs.head_places import Head
from transformer.text.message import N_
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.shell.actions import Actions, SelectCell, SelectHead
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.reducer import State
from ui.show.drawings import show_map
from ui.show.figures import show_snippet, show_source, show_table
from ui.words.texts import as_plain, common

_MOST = 20  # pairs of tokens
_CIRCUITS = {"looks": query_key_circuit, "writes": output_value_circuit}


def general(p: Page) -> None:
    """The section: the copying score, the strongest pairs of both circuits, and the composition of heads."""
    focus, text = p.focus, p.text
    score, read_out = _score(p)
    st.markdown(
        text["general_copying"].format(head=focus.head, layer=focus.layer, score=three_digits(score))
        + " "
        + text["general_logits" if read_out else "general_directions"]
    )
    for column, name in zip(st.columns(2, gap="medium"), _CIRCUITS, strict=True):
        with column:
            st.markdown(f"**{text[f'general_{name}']}**")
            if (pairs := _pairs(p, name)) is not None:
                show_table(
                    pd.DataFrame(pairs, columns=[text[f"general_{name}_{part}"] for part in ("from", "to", "value")]),
                    name=f"strongest-pairs-{name}",
                    height=320,
                )
    st.caption(text["general_caveat"])
    _composition(p)
    show_snippet(
        "general",
        f"import transformer\nfrom transformer.heads.head_circuits import output_value_circuit\n\n{p.load_line}"
        f'circuit = output_value_circuit(checkpoint.model, "{focus.stack}", "{focus.kind}", '
        f"layer={focus.layer}, head={focus.head})\n"
        "print(circuit.copying_score)\n"
        "for row, column, value in circuit.strongest(10):\n"
        "    print(checkpoint.tokenizer.display(row), checkpoint.tokenizer.display(column), value)\n",
    )
    show_source(query_key_circuit, output_value_circuit, Circuit, composition)


def _circuit(p: Page, name: str) -> Circuit:
    focus = p.focus
    return _CIRCUITS[name](p.checkpoint.model, focus.stack, focus.kind, layer=focus.layer, head=focus.head)


def _place(p: Page) -> tuple:
    return (p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)


def _score(p: Page) -> tuple[float, bool]:
    def compute() -> tuple[float, bool]:
        circuit = _circuit(p, "writes")
        return circuit.copying_score, circuit.read_out

    return store.get(p.checkpoint, ("copying", *_place(p)), compute)


def _pairs(p: Page, name: str) -> list[tuple[str, str, float]] | None:
    """With a vocabulary of 50,000 it takes some seconds, and can be stopped."""
    circuit, shown = _circuit(p, name), p.checkpoint.tokenizer.display
    found = jobs.result(
        p.checkpoint,
        ("pairs", name, *_place(p)),
        lambda report: circuit.strongest(_MOST, progress=report),
        doing=common("wait.circuits"),
    )
    return None if found is None else [(shown(row), shown(column), value) for row, column, value in found]


def _composition(p: Page) -> None:
    """All heads of the stack with all heads before them; a click chooses the later one."""
    text, focus = p.text, p.focus
    way = chosen_option(text, "composition", WAYS, key="attention_composition", help=text["composition_help"])
    found = store.get(
        p.checkpoint,
        ("composition", focus.stack, way),
        lambda: composition(p.checkpoint.model, focus.stack, way=way),
        wait="wait.circuits",
    )
    known = np.isfinite(found.scores)
    if not known.any():
        st.caption(text["composition_nothing"])
        return
    this = Head(focus.stack, focus.kind, focus.layer, focus.head)
    row = found.later.index(this)
    st.markdown(_in_words(p, found, row))
    show_map(
        value_map(
            np.where(known, found.scores, 0.0),
            row_labels=[_label(head) for head in found.later],
            column_labels=[_label(head) for head in found.earlier],
            row_title=N_("later head"),
            column_title=N_("earlier head"),
            scale="sequential",
            allowed=known,
            title=text[f"composition_{way}"],
            value_name=_("composition score"),
            phrase=("", N_(" reads ")),
            chosen_row=row,
            masked_text=_("does not read it"),
            height=420,
        ),
        key="attention composition",
        means=partial(_look_at, found.later),
    )
    st.caption(text["composition_caption"].format(random=three_digits(found.random)))


def _look_at(heads: Sequence[Head], _state: State, cell: SelectCell) -> Actions:
    head = heads[cell.query]
    return (SelectHead(head.layer, head.head, kind=head.kind),)


def _in_words(p: Page, found: Composition, row: int) -> str:
    scores = found.scores[row]
    if not np.isfinite(scores).any():
        return p.text["composition_first"]
    best = int(np.nanargmax(scores))
    return p.text["composition_best"].format(
        earlier=as_plain(_label(found.earlier[best])),
        score=three_digits(float(scores[best])),
        factor=three_digits(float(scores[best] / found.random)),
    )


def _label(head: Head) -> str:
    words = {
        ("encoder", "self"): N_("encoder {layer}.{head}"),
        ("decoder", "self"): N_("decoder {layer}.{head}"),
        ("decoder", "cross"): N_("cross {layer}.{head}"),
    }
    return _(words[head.stack, head.kind], layer=head.layer, head=head.head)
