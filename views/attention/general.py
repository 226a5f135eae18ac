"""One head beyond this sentence: what its weights prefer, and where it fires."""

from functools import partial

import pandas as pd
import streamlit as st

from charts.toolkit.style import three_digits
from transformer.heads.firing_examples import Firing, head_firings
from transformer.heads.head_circuits import (
    Circuit,
    output_value_circuit,
    query_key_circuit,
)
from transformer.runs.head_places import Head
from transformer.runs.readings import with_task
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.lab.firing_list import show_firings
from ui.lab.sentence_list import SentenceList, sentence_list
from ui.page.page import Page
from ui.shell import choice
from ui.shell.focus import select_sentence
from ui.show.figures import show_snippet, show_source, show_table
from ui.words.texts import as_plain, common
from views.attention.attention_controls import open_column
from views.attention.attention_view_model import AttentionViewModel

_MOST = 20  # pairs of tokens
_BATCH = 8  # small, so that a click on "stop" takes effect soon
_CIRCUITS = {"looks": query_key_circuit, "writes": output_value_circuit}


def general(p: Page, _shown: AttentionViewModel) -> None:
    """Draw the copying score and the strongest pairs of both circuits."""
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
    show_snippet(
        "general",
        f"import transformer\nfrom transformer.heads.head_circuits import output_value_circuit\n\n{p.load_line}"
        f'circuit = output_value_circuit(checkpoint.model, "{focus.stack}", "{focus.kind}", '
        f"layer={focus.layer}, head={focus.head})\n"
        "print(circuit.copying_score)\n"
        "for row, column, value in circuit.strongest(10):\n"
        "    print(checkpoint.tokenizer.display(row), checkpoint.tokenizer.display(column), value)\n",
    )
    show_source(query_key_circuit, output_value_circuit, Circuit)


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
    """Compute the circuits of a head; a vocabulary of 50,000 takes seconds, so this can be stopped."""
    circuit, shown = _circuit(p, name), p.checkpoint.tokenizer.display
    found = jobs.result(
        p.checkpoint,
        ("pairs", name, *_place(p)),
        lambda report: circuit.strongest(_MOST, progress=report),
        doing=common("wait.circuits"),
    )
    return None if found is None else [(shown(row), shown(column), value) for row, column, value in found]


def firing(p: Page, _shown: AttentionViewModel) -> None:
    """Draw the choice of sentences, the strongest examples of the head, and the Python code."""
    head, checkpoint = Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head), p.checkpoint
    with st.container(horizontal=True, vertical_alignment="bottom"):
        special = choice.toggle(common("fires.special"), key="fires_special", help=common("fires.special_help"))
        read = sentence_list()
    found = jobs.result(
        checkpoint,
        ("firing", read.digest, special),
        lambda report: head_firings(checkpoint, read.sentences, special=special, batch_size=_BATCH, progress=report),
        saying=_reading,
    )
    if found is None:
        return
    firings = found.get(head, ())
    place = {"head": head.head, "layer": head.layer, "count": len(read.sentences), "name": as_plain(read.name)}
    if not firings:
        st.caption(p.text["fires_nowhere"].format(**place))
        return
    st.markdown(p.text["fires_says"].format(**place))
    show_firings(firings, of_unit=False, open_=partial(_open_firing, p, read))
    show_snippet(
        "firing",
        "import transformer\nfrom transformer.runs.head_places import Head\n"
        "from transformer.heads.firing_examples import head_firings\n"
        f"from transformer.text.sentence_files import read_sentences\n\n{p.load_line}sentences = {read.python}\n"
        f"found = head_firings(checkpoint, sentences, special={special})\n"
        f'for firing in found[Head("{head.stack}", "{head.kind}", {head.layer}, {head.head})]:\n'
        "    query, key = firing.asked[firing.query], firing.read[firing.key]\n"
        "    print(firing.value, query.display, key.display, sentences[firing.sentence])\n",
    )
    show_source(head_firings)


def _open_firing(p: Page, read: SentenceList, one: Firing) -> None:
    """Open this page with that sentence, query and cell (called before the next run)."""
    sentence = with_task(p.checkpoint, read.sentences[one.sentence])
    select_sentence(sentence, one.query)
    open_column(one.key)


def _reading(done: int, total: int) -> str:
    return common("sentences.reading", done=done, total=total)
