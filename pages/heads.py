"""Heads: what do all heads do? Those with a role large and named, every layer × head below them."""

import streamlit as st

from ui.page.page import page
from views.heads import heads_sections as sections

with page("heads", needs=("stack", "kind", "layer", "head")) as p:
    views, corpus, scope = sections.attention_views(p), None, "sentence"
    here = sections.roles_here(p, views)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="heads first row"):
        claim = st.container()
        if not p.reads_pictures:
            how = {"help": p.text["scope_help"], "label_visibility": "collapsed"}
            scope = p.option("scope", ("sentence", "corpus"), key="heads_scope", **how)
        if scope == "corpus":
            corpus = sections.roles_over_many(p)
        over_many = corpus.of(p.focus.stack, p.focus.kind) if corpus else ()
        with st.popover(p.text["change"], icon=":material/tune:", key="heads change"):
            order = sections.chosen_order(p, many=bool(over_many))
            stretch = p.toggle("stretch", key="heads_stretch", default=p.reads_files)
    heads = over_many or here
    row = sections.image_row(p, views)
    with claim:
        sections.claim(p, heads, many=bool(over_many)) if row is None else sections.claim_on_image(p, views, row)
    if row is None:
        sections.show_maps(p, views, heads, order=order, stretch=stretch)
    else:
        sections.show_image_maps(p, views, heads, row, order=order, stretch=stretch)
    chosen = [head for head in (*here, *over_many) if sections.place_of(head) == (p.focus.layer, p.focus.head)]
    sections.show_head(p, views, chosen[0], chosen[-1] if over_many else None)
    sections.show_below(p, views, heads, chosen[-1] if over_many else None)
    sections.show_definitions(p, views)
