"""The controls above the maps of the Heads page."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer.config import ModelConfig
from transformer.heads.head_roles import CorpusRoles
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.words.texts import PageText
from views.heads.corpus import SCOPES, Corpus, known_corpus
from views.heads.heads_view_model import CORPUS_ORDERS, ORDERS, HeadsChoices

MANY_LAYERS = 7  # least number of layers for which some of them can be chosen


def choose(p: Page) -> tuple[HeadsChoices, Corpus | None, DeltaGenerator]:
    """Draw one row: over which sentences roles are counted, and collapsed, the other settings.

    Returns:
        What was chosen, what is known of the heads over many sentences, and the place for the page's first sentence.
    """
    text, scope = p.text, SCOPES[0]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="heads first row"):
        first = st.container()
        if not p.reads_pictures:
            explained = text["scope_help"]
            scope = chosen_option(
                text, "scope", SCOPES, key="heads_scope", help=explained, label_visibility="collapsed"
            )
        corpus = known_corpus(p, scope)
        many = scope != "sentence" and _is_about(p, corpus.roles if corpus else None)
        with st.popover(text["change"], icon=":material/tune:", key="heads change"):
            choices = HeadsChoices(
                scope=scope,
                order=chosen_order(text, p.checkpoint.config, many=many),
                stretch=choice.toggle(
                    text["stretch"], key="heads_stretch", help=text["stretch_help"], default=p.reads_files
                ),
                scrolls=choice.toggle(text["scrolls"], key="heads_scrolls", help=text["scrolls_help"]),
                whole=p.reads_pictures and choice.toggle(text["whole"], key="heads_whole", help=text["whole_help"]),
                layers=chosen_layers(p),
            )
    return choices, corpus, first


def _is_about(p: Page, roles: CorpusRoles | None) -> bool:
    """Return whether roles over many sentences are known for the kind of attention on the page."""
    return roles is not None and bool(roles.of(p.focus.stack, p.focus.kind))


def chosen_layers(p: Page) -> range | None:
    """Choose the layers whose maps are shown; ``None``, all of them, if there are few."""
    count = p.trace.n_layers(p.focus.stack)
    if count < MANY_LAYERS:
        return None
    key = f"heads_layers_{count}"  # layers chosen for another model do not apply here
    first, last = choice.slider(p.text["layers"], 0, count - 1, (0, count - 1), key=key)
    return range(first, last + 1)


def chosen_order(text: PageText, config: ModelConfig, *, many: bool) -> str:
    """Choose the order of the maps; each list of orders has its own widget, so a choice is always valid."""
    orders, key = ORDERS, "heads_order"
    if many:
        induction = config.kind == "decoder-only"
        orders = (*CORPUS_ORDERS, "induction") if induction else CORPUS_ORDERS
        key = "heads_corpus_order_induction" if induction else "heads_corpus_order"
    explained = text["order_help_corpus" if many else "order_help"]
    return chosen_option(text, "order", orders, key=key, first="layer", in_list=True, help=explained)
