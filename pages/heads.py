"""Heads: what do all heads do? Those with a role large and named, every layer × head below them."""

from transformer.runs.head_places import Head
from ui.page.page import page
from views.heads.chosen_head import show_chosen_head, show_counts_and_formula, show_definitions_and_code
from views.heads.corpus import compute, offer_reading
from views.heads.heads_controls import choose
from views.heads.heads_view_model import heads_view_model
from views.heads.maps import show_maps
from views.heads.role_words import first_claim
from views.heads.sections import show_section

with page("heads", needs=("stack", "kind", "layer", "head")) as p:
    choices, corpus, first = choose(p)
    location = Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    heads = heads_view_model(
        p.trace,
        location,
        choices,
        corpus=corpus.roles if corpus else None,
        token=p.focus.token,
    )

    first.markdown(first_claim(heads, p.text))
    progress = offer_reading(p, choices.scope, corpus)
    show_maps(heads, p.text)
    show_chosen_head(p, heads)
    show_counts_and_formula(p, heads, corpus)
    show_section(p, heads)
    show_definitions_and_code(p, heads, corpus)
    compute(p, choices.scope, progress)
