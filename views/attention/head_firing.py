"""Where does this head fire? Its largest weights over many sentences; and its queries and keys as points."""

from functools import partial

import streamlit as st

from charts.toolkit.numbers import percent
from charts.toolkit.style import three_digits
from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.heads.firing_examples import Firing, head_firings
from transformer.heads.query_key_space import query_key_space
from transformer.runs.head_places import Head
from transformer.runs.readings import with_task
from ui.compute.jobs import jobs
from ui.lab.firing_list import show_firings
from ui.lab.sentence_list import SentenceList, sentence_list
from ui.shell import choice
from ui.shell.actions import SelectSentence
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.reducer import send
from ui.show.figures import show_figure, show_snippet, show_source
from ui.words.texts import as_plain, common
from views.attention.attention_controls import open_column
from views.attention.query_key_space_figure import COLOURS
from views.attention.query_key_space_figure import query_key_space as drawn_space

_BATCH = 8  # small, so that a click on "stop" soon takes effect


def firing(p: Page) -> None:
    """The section: the sentences, and one of its two pictures."""
    head = Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        view = chosen_option(p.text, "fires", ["list", "space"], key="attention_fires")
        if view == "space":
            colour = chosen_option(p.text, "colour", COLOURS, key="attention_colour")
        else:
            special = choice.toggle(common("fires.special"), key="fires_special", help=common("fires.special_help"))
        read = sentence_list()
    if view == "space":
        _space(p, head, read, colour)
    else:
        _list(p, head, read, special=special)


def _list(p: Page, head: Head, read: SentenceList, *, special: bool) -> None:
    checkpoint = p.checkpoint
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
    show_firings(firings, of_unit=False, open_=partial(_open, p, read))
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


def _open(p: Page, read: SentenceList, one: Firing) -> None:
    """Before the next run: this page with that sentence, that query, and the arithmetic of that cell."""
    sentence = with_task(p.checkpoint, read.sentences[one.sentence])
    for action in (SelectSentence(sentence, one.query), *open_column(one.key)):
        send(action)


def _space(p: Page, head: Head, read: SentenceList, colour: str) -> None:
    checkpoint = p.checkpoint
    found = jobs.result(
        checkpoint,
        ("query key space", read.digest, head),
        lambda report: query_key_space(checkpoint, read.sentences, head, batch_size=_BATCH, progress=report),
        saying=_reading,
    )
    if found is None:
        return
    picture = found.picture
    show_figure(
        drawn_space(
            picture.coordinates,
            tokens=(*found.queries.tokens, *found.keys.tokens),
            n_queries=len(found.queries.tokens),
            colour=colour,
            explained=picture.explained,
        ),
        name="queries-and-keys",
        caption=p.text["space_caption"],
        alt=p.text["space_alt"],
    )
    rule = score_rule(checkpoint, head.stack, head.layer, head.kind)
    said = p.text["space_says"].format(
        queries=len(found.queries.tokens),
        keys=len(found.keys.tokens),
        sentences=len(set(found.queries.sentences)),
        share=percent(sum(picture.explained)),
        agreement=three_digits(found.agreement),
    )
    more = [p.text[f"space_{what}"] for what, is_so in (("added", rule.added), ("cap", rule.cap is not None)) if is_so]
    st.markdown(" ".join((said, *more)))
    st.caption(p.text["space_source"])
    show_snippet(
        "queries and keys",
        "import transformer\nfrom transformer.runs.head_places import Head\n"
        "from transformer.heads.query_key_space import query_key_space\n"
        f"from transformer.text.sentence_files import read_sentences\n\n{p.load_line}"
        f'head = Head("{head.stack}", "{head.kind}", {head.layer}, {head.head})\n'
        f"space = query_key_space(checkpoint, {read.python}, head)\n"
        "print(space.agreement, space.picture.explained)\n"
        "print(space.queries.vectors @ space.keys.vectors.T)  # scores, up to one number for each query\n",
    )
    show_source(query_key_space)


def _reading(done: int, total: int) -> str:
    return common("sentences.reading", done=done, total=total)
