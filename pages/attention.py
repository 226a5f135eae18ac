"""Attention: who looks at whom, and why? One head in full, from queries and keys to what it writes."""

import streamlit as st

from transformer.attention import MultiHeadAttention, attention_scores, attention_weights
from transformer.attention_maps.attention_path import attention_path, norm_weighted
from ui.shell.choice import chosen_section
from ui.shell.guidance.way import way_to
from ui.shell.page import page
from ui.show.figures import show_source
from views.attention import row_guess
from views.attention.attention_controls import ARITHMETIC, cell_opener, close_cell, controls, draw, row_labels
from views.attention.attention_steps import draw_step, stepper
from views.attention.cell_arithmetic import arithmetic_of, explain_cell, more_about_cell
from views.attention.facts import FEW_KEYS, drawn_view, facts, largest_of, places, read_aloud, rewrite
from views.attention.general import general
from views.attention.head_firing import firing
from views.attention.on_picture import on_picture
from views.attention.shaded import height_above, shaded_sentence
from views.attention.trust import edge_effect, trust
from views.attention.word_map import words

with page("attention", needs=("stack", "kind", "layer", "head", "token")) as p:
    place = (p.focus.stack, p.focus.layer, p.focus.kind)
    path = attention_path(p.trace, *place, head=p.focus.head)
    view, row = path.view, p.focus.token
    weighted = norm_weighted(p.trace, *place)[p.focus.head]

    if row_guess.is_on():
        row_guess.guess(p, view)
        p.finish()
    shown = controls(p, view)
    rows = row_labels(p, view, shown)
    predicted = rows[row] if shown.predicted else None
    drawn = drawn_view(p, view, shown.drawing, weighted)
    aloud = read_aloud(p.text, drawn, head=0, row=row, predicted=predicted, drawing=shown.drawing)
    shown.aloud.markdown(aloud)
    wide, cell = len(view.key) > FEW_KEYS, shown.key is not None
    place_of = places(wide=wide, cell=cell)
    above = wide and not cell and not p.reads_pictures
    with place_of.picture:
        draw(p, view, shown, weighted, lower=height_above(view) if above else 0)
    with place_of.sentence:
        shaded_sentence(
            p.text,
            drawn,
            row=row,
            name=rows[row],
            limit=largest_of(drawn) if shown.stretch else 1.0,
            drawing=shown.drawing,
            wide=wide or cell,
            pictures=p.checkpoint.tokenizer if p.reads_pictures else None,
        )
    if cell:
        arithmetic = arithmetic_of(p, key=shown.key)
        with place_of.beside, st.container(border=True, key=ARITHMETIC, gap="xsmall"):
            explain_cell(p, view, arithmetic, key=shown.key, row_label=rows[row])
            st.button(p.text["arithmetic_close"], icon=":material/close:", on_click=close_cell)
    with place_of.numbers:
        facts(p, drawn, shown.drawing, weighted)
    rewrite(p)
    if cell:
        edge_effect(p, view, key=shown.key)
        more_about_cell(p, view, arithmetic, key=shown.key)
    way_to(ARITHMETIC)

    # What a head prefers among all tokens, and in which sentences it fires, are questions about texts.
    sections = ["picture", "path", "trust"] if p.reads_pictures else ["path", "words", "trust", "general", "fires"]
    section = chosen_section(p.text, sections, key="attention_section")
    if section == "picture":
        on_picture(p, view, stretch=shown.stretch)
    elif section == "words":
        words(p, view)
    elif section == "trust":
        trust(p, view)
    elif section == "general":
        general(p)
    elif section == "fires":
        firing(p)
    else:
        with st.container(key="attention path"):
            step = stepper(p, path.rule)
            draw_step(p, path, step, rows=rows, key=shown.key, means=cell_opener(shown))
        show_source(MultiHeadAttention.forward, attention_scores, attention_weights)
