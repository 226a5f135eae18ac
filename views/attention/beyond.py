"""One head beyond this sentence: what its weights prefer, and where it fires."""

from functools import partial

import streamlit as st

from transformer.heads.firing_examples import Firing, head_firings
from transformer.heads.head_circuits import Circuit, output_value_circuit, query_key_circuit
from transformer.runs.head_places import Head
from transformer.runs.readings import with_task
from ui.page.page import Page
from ui.sections.firing_list import show_firings
from ui.sections.sentence_list import SentenceList, sentence_list
from ui.shell import choice
from ui.shell.focus import select_sentence
from ui.words.texts import common
from views.attention.attention_sections import Shown, open_column

_MOST = 20  # pairs of tokens
_BATCH = 8  # small, so that a click on "stop" takes effect soon


def general(p: Page, shown: Shown) -> None:
    """Draw the copying score and the strongest pairs of both circuits."""
    place = {"layer": p.focus.layer, "head": shown.head}
    of, display = (p.checkpoint.model, p.focus.stack, p.focus.kind), p.checkpoint.tokenizer.display
    looks = p.calc(query_key_circuit, *of, **place, name="looks")
    writes = p.calc(output_value_circuit, *of, **place, name="writes", shows=(".copying_score",))
    p.say("general_copying", score=writes.copying_score, **place)
    p.say("general_logits" if writes.read_out else "general_directions")
    for column, name, circuit in zip(st.columns(2, gap="medium"), ("looks", "writes"), (looks, writes), strict=True):
        with column:
            p.say(f"general_{name}")
            pairs = p.calc(
                Circuit.strongest, circuit, _MOST, name="pairs", slow=True, shows=("",), wait="wait.circuits"
            )
            rows = [
                {f"{name}_from": display(one), f"{name}_to": display(other), f"{name}_value": value}
                for one, other, value in pairs or ()
            ]
            if rows:
                p.table(rows, name=f"strongest-pairs-{name}", height=320)
    p.say("general_caveat", small=True)


def fires(p: Page, shown: Shown) -> None:
    """Draw the choice of sentences, and the strongest examples of the head."""
    head = Head(p.focus.stack, p.focus.kind, p.focus.layer, shown.head)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        special = choice.toggle(common("fires.special"), key="fires_special", help=common("fires.special_help"))
        read = sentence_list(p)
    p.known(head, repr(head), imports="from transformer.runs.head_places import Head")
    found = p.calc(
        head_firings, p.checkpoint, read.sentences, special=special, batch_size=_BATCH, name="found", slow=True,
        shows=(f"[{head!r}][0].value",),
    )  # fmt: skip
    if found is None:
        return
    firings = found.get(head, ())
    place = {"head": str(head.head), "layer": str(head.layer), "count": len(read.sentences), "name": read.name}
    p.say("fires_says" if firings else "fires_nowhere", **place)
    if firings:
        show_firings(p, firings, of_unit=False, open_=partial(_open, p, read))


def _open(p: Page, read: SentenceList, one: Firing) -> None:
    """Open this page with that sentence, query and cell (called before the next run)."""
    select_sentence(with_task(p.checkpoint, read.sentences[one.sentence]), one.query)
    open_column(one.key)
