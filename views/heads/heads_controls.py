"""What the Heads page shows, chosen above its maps, and the Python that reproduces what it says of one head."""

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer.config import ModelConfig
from transformer.text.sentence_files import SHIPPED
from ui.lab.head_table import CORPUS_ORDERS, ORDERS
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.words.texts import PageText
from views.heads.corpus import SCOPES, Corpus

MANY_LAYERS = 7  # from here on some of them can be chosen


@dataclass(frozen=True)
class Shown:
    """What was chosen, the place of the sentence with which the page opens, and that of the list of orders."""

    p: Page
    scope: str
    stretch: bool
    every: bool
    scrolls: bool
    layers: range
    claim: DeltaGenerator
    order_room: DeltaGenerator

    def order(self, *, many: bool) -> str:
        """How the tiles are sorted, known once it is known whether there are roles over ``many`` sentences."""
        if self.every:
            return "layer"
        with self.order_room:
            return chosen_order(self.p.text, self.p.checkpoint.config, many=many)


def controls(p: Page) -> Shown:
    """One row: over which sentences roles are counted, and what else can be changed, folded away."""
    text = p.text
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        scopes = SCOPES[:1] if p.reads_pictures else SCOPES  # lists of sentences are no pictures
        explained = text["scope_help"]
        scope = chosen_option(text, "scope", scopes, key="heads_scope", help=explained, label_visibility="collapsed")
        with st.popover(text["change"], icon=":material/tune:", key="heads change"):
            order_room = st.container()
            stretch = choice.toggle(text["stretch"], key="heads_stretch", help=text["stretch_help"])
            every = choice.toggle(text["every"], key="heads_every", help=text["every_help"])
            scrolls = choice.toggle(text["scrolls"], key="heads_scrolls", help=text["scrolls_help"])
            layers = chosen_layers(p)
    return Shown(p, scope, stretch, every, scrolls, layers, st.container(), order_room)


def chosen_layers(p: Page) -> range:
    """All of them where there are few."""
    count = p.trace.n_layers(p.focus.stack)
    if count < MANY_LAYERS:
        return range(count)
    key = f"heads_layers_{count}"  # what another model has is none of this one's
    first, last = choice.slider(p.text["layers"], 0, count - 1, (0, count - 1), key=key)
    return range(first, last + 1)


def chosen_order(text: PageText, config: ModelConfig, *, many: bool) -> str:
    """Each list of orders has a widget of its own, so that a choice always is one of it."""
    orders, key = ORDERS, "heads_order"
    if many:
        induction = config.kind == "decoder-only"
        orders = (*CORPUS_ORDERS, "induction") if induction else CORPUS_ORDERS
        key = "heads_corpus_order_induction" if induction else "heads_corpus_order"
    explained = text["order_help_corpus" if many else "order_help"]
    return chosen_option(text, "order", orders, key=key, first="layer", in_list=True, help=explained)


def snippet(p: Page, corpus: Corpus | None) -> str:
    """Roles of the focused head in this sentence, or over the sentences of ``corpus``."""
    focus = p.focus
    if corpus is None:
        return (
            f"{p.preamble}\nfrom transformer.heads.head_roles import sentence_roles\n\n"
            f'view = trace.attention("{focus.stack}", layer={focus.layer}, kind="{focus.kind}")\n'
            f"role = sentence_roles(view)[{focus.head}]\nprint(role.role, role.score)\nprint(role.scores)\n"
        )
    return (
        "import transformer\nfrom transformer.heads.head_roles import corpus_roles\n"
        "from transformer.text.sentence_files import read_sentences\n\n"
        f"{p.load_line}"
        f"sentences = {_sentences(corpus)}\n"
        f"found = corpus_roles(checkpoint, sentences)\n"
        f'head = found.head("{focus.stack}", "{focus.kind}", layer={focus.layer}, head={focus.head})\n'
        "print(head.role, head.consistency, head.n_sentences)\nprint(head.shares)\nprint(head.scores)\n"
    )


def _sentences(corpus: Corpus) -> str:
    if not corpus.sentences:
        return f"read_sentences({corpus.name!r})  # the file that they came from"
    if corpus.name == SHIPPED.name:
        return f"read_sentences()[:{len(corpus.sentences)}]  # those that ship with it"
    return "[\n" + "".join(f"    {sentence!r},\n" for sentence in corpus.sentences) + "]"
