"""Heads: what do all heads do? Those with a job large and named, every layer × head under them, here or over many."""

import streamlit as st

from charts.canvas.attention_heads import attention_heads
from charts.canvas.attention_maps import predicted_rows
from transformer.heads.annotated_words import alignment_tallies, syntactic_tallies
from transformer.heads.head_roles import choose_role, corpus_roles, head_roles, sentence_roles, summarise
from transformer.heads.induction import induction_test
from transformer.heads.weight_patterns import place_shares, positional_tallies
from ui.lab.head_table import concatenation, definitions, role_counts, role_text, sorted_heads
from ui.shell.choice import chosen_section
from ui.shell.guidance.way import way_to
from ui.shell.navigation import go_to
from ui.shell.page import page
from ui.show.drawings import show_grid
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from views.heads import corpus
from views.heads.corpus_role_table import comparison_table, corpus_counts, corpus_role_text, depth, sections
from views.heads.every_head import show_every_head
from views.heads.groups import heads_of_one_key
from views.heads.head_card import CARD, open_card
from views.heads.heads_controls import controls, snippet
from views.heads.named import claim, head_words, named_heads, with_a_job
from views.heads.scatter import brush_note, brushed

MANY_TOKENS = 64  # with more tokens most weights are too small for the fixed scale

with page("heads", needs=("stack", "kind", "layer", "head")) as p:
    focus, text = p.focus, p.text
    views = [p.trace.attention(focus.stack, layer, focus.kind) for layer in range(p.trace.n_layers(focus.stack))]
    here = [role for view in views for role in sentence_roles(view)]

    shown = controls(p)
    found, reading = corpus.corpus_of(p, shown.scope)
    overall = found.roles.of(focus.stack, focus.kind) if found else ()
    many = bool(overall) and shown.scope != "sentence"  # what names, order and numbers speak of
    roles = overall if many else here
    seen = [role for role in roles if role.layer in shown.layers]
    order = sorted_heads(seen, order=shown.order(many=many))
    named, chosen = named_heads(seen), (focus.layer, focus.head)
    if kept := {(role.layer, role.head) for role in seen} & {*brushed(p)}:
        order = [place for place in order or [(role.layer, role.head) for role in seen] if place in kept]
        named = [place for place in named if place in kept] or order[:1]
    shown.claim.markdown(claim(seen, text))
    group = heads_of_one_key(p, views[focus.layer])
    if shown.every:
        show_every_head(p, corpus=found if many else None, stretch=shown.stretch)
    else:
        show_grid(
            attention_heads(
                [view for view in views if view.layer in shown.layers],
                named=named,
                words=head_words(seen, text),
                clear=[(head.layer, head.head) for head in with_a_job(seen)],
                selected=None if chosen[0] not in shown.layers or (kept and chosen not in kept) else chosen,
                order=order,
                shifted_labels=predicted_rows(p.trace, focus.kind),
                stretch=shown.stretch,
                heads_a_key=len(group),
                scrolls=shown.scrolls,
            ),
            key="heads grid",
        )
        brush_note(p)
    if not shown.stretch and (count := len(views[0].key)) > MANY_TOKENS:
        st.caption(text["dark"].format(count=count, switch=text["stretch"]))

    this = next(role for role in here if (role.layer, role.head) == chosen)
    same = next((role for role in overall if (role.layer, role.head) == chosen), None)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            text["chosen_both" if same else "chosen"].format(
                layer=focus.layer,
                head=focus.head,
                kind=text[f"kind_{focus.stack}_{focus.kind}"],
                role=role_text(this, text),
                corpus=corpus_role_text(same, text) if same else "",
            )
            + (text["shares"].format(first=group[0], last=group[-1]) if len(group) > 1 else ""),
            width="content",
        )
        if st.button(text["open"], icon=":material/visibility:"):
            go_to("attention")
        if not p.reads_pictures:
            st.button(text["card_open"], icon=":material/balance:", on_click=open_card)

    with st.expander(text["more"], icon=":material/expand_more:", key="heads more", expanded=many):
        st.markdown(corpus_counts(found, overall, text, p.checkpoint) if many else role_counts(here, text))
        if same:
            show_table(comparison_table(this, found, same, text), name="head-here-and-over-all")
        module = p.checkpoint.model.get_submodule(views[0].name)
        latex, caption = concatenation(text, module, n_rows=len(views[0].query))
        show_formula(latex, caption=caption)
    offered = sections(roles, of_sentences=not p.reads_pictures)
    section = chosen_section(text, offered, key="heads_section", owner=offered)
    with st.container(key=CARD):
        depth(p, section, roles, views, overall)
    way_to(CARD)
    with st.expander(text["definitions"], icon=":material/menu_book:"):
        st.markdown(definitions(text))
    show_snippet("heads", snippet(p, found if many else None))
    tests = (corpus_roles, summarise, induction_test, positional_tallies, syntactic_tallies, alignment_tallies)
    show_source(sentence_roles, head_roles, choose_role, place_shares, *(tests if many else ()))
    if shown.scope != "sentence":
        corpus.compute(p, shown.scope, reading)
