"""The largest values of one unit over many sentences."""

from functools import partial

import streamlit as st

from transformer.heads.firing_examples import Firing, unit_firings
from transformer.runs.readings import with_task
from ui.compute.jobs import jobs
from ui.lab.firing_list import show_firings
from ui.lab.sentence_list import SentenceList, sentence_list
from ui.page.page import Page
from ui.shell import choice
from ui.shell.focus import select_sentence
from ui.show.figures import show_snippet, show_source
from ui.words.texts import as_plain, common
from views.feed_forward.feed_forward_view_model import FeedForwardViewModel
from views.feed_forward.units import choose_unit

_BATCH = 8  # small, so that a click on "stop" soon takes effect


def firing(p: Page, view_model: FeedForwardViewModel) -> None:
    """List the sentences in which one of the strongest units of the token in focus has its largest values."""
    stack, layer, units = view_model.stack, view_model.layer, view_model.strongest
    with st.container(horizontal=True, vertical_alignment="bottom"):
        unit = choose_unit(p, units)
        special = choice.toggle(common("fires.special"), key="fires_special", help=common("fires.special_help"))
        read = sentence_list()
    checkpoint = p.checkpoint
    found = jobs.result(
        checkpoint,
        ("units firing", read.digest, special, stack, layer, units),
        lambda report: unit_firings(
            checkpoint, read.sentences, stack, layer, units, special=special, batch_size=_BATCH, progress=report
        ),
        saying=lambda done, total: common("sentences.reading", done=done, total=total),
    )
    if found is None:
        return
    st.markdown(
        p.text["fires_says"].format(unit=unit, layer=layer, count=len(read.sentences), name=as_plain(read.name))
    )
    show_firings(found[unit], of_unit=True, open_=partial(_open, p, read))
    st.caption(p.text["fires_source"])
    show_snippet(
        "firing",
        "import transformer\nfrom transformer.heads.firing_examples import unit_firings\n"
        f"from transformer.text.sentence_files import read_sentences\n\n{p.load_line}sentences = {read.python}\n"
        f'found = unit_firings(checkpoint, sentences, "{stack}", {layer}, [{unit}], special={special})\n'
        f"for firing in found[{unit}]:\n"
        "    print(firing.value, firing.read[firing.key].display, sentences[firing.sentence])\n",
    )
    show_source(unit_firings)


def _open(p: Page, read: SentenceList, one: Firing) -> None:
    sentence = with_task(p.checkpoint, read.sentences[one.sentence])
    select_sentence(sentence, one.key)
