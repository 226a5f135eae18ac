"""Attention: which tokens attend to which, and why? One head from queries and keys to its output."""

import streamlit as st

from transformer.attention import MultiHeadAttention, attention_scores, attention_weights
from transformer.runs.head_places import Head
from transformer.runs.inputs import prompt_of
from ui.page.page import Page, page
from ui.shell.choice import chosen_section
from ui.shell.guidance.way import lead_to
from ui.shell.openings import has_place
from ui.show.figures import show_source
from views.attention.attention_controls import ARITHMETIC, choose, names_predictions
from views.attention.attention_picture import draw, on_picture, places
from views.attention.attention_steps import draw_step, stepper
from views.attention.attention_view_model import attention_view_model
from views.attention.cell_arithmetic import edge_effect, explain_cell, more_about_cell
from views.attention.facts import facts, rewrite, say_row
from views.attention.general import firing, general
from views.attention.long_text import show_long_text
from views.attention.reading_section import reading
from views.attention.shaded import shaded_sentence
from views.attention.trust import trust
from views.attention.weights_only import has_queries, show_weights_only

# The page opens with the path. A head's preferences among all tokens and its strongest examples are questions about
# texts.
SECTIONS = {"path": None, "reading": reading, "trust": trust, "general": general, "fires": firing}
SECTIONS_OF_PICTURES = {"picture": on_picture, "path": None, "trust": trust}


def begins(p: Page) -> tuple[str, int]:
    """Begin at the row of the head's largest weight; in a long text, at the token that is continued."""
    if p.reads_long_text:
        return p.focus.stack, len(prompt_of(p.checkpoint, p.sentence)) - 1
    if has_place(p.focus.checkpoint, p.focus.sentence):
        return p.focus.stack, p.focus.token
    pair = p.trace.attention(p.focus.stack, p.focus.layer, p.focus.kind).strongest_pair(p.focus.head)
    return p.focus.stack, p.focus.token if pair is None else pair[0]


def predicts(p: Page) -> bool:
    """Name the tokens as the rows of the map; of long texts, those that are read."""
    return not p.reads_long_text and has_queries(p) and names_predictions(p)


with page(
    "attention",
    needs=("stack", "kind", "layer", "head", "token"),
    begins=begins,
    predicts=predicts,
) as p:
    if p.reads_long_text:
        show_long_text(p)
        p.finish()
    if not has_queries(p):
        show_weights_only(p)
        p.finish()
    head, row = Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head), p.focus.token
    choices, aloud = choose(p)
    shown = attention_view_model(p.trace, head, row, choices)
    with aloud:
        say_row(p, shown)
    place = places(shown)
    with place.picture:
        draw(p, shown)
    with place.sentence:
        shaded_sentence(p, shown)
    if shown.cell:
        with place.beside, st.container(border=True, key=ARITHMETIC, gap="xsmall"):
            explain_cell(p, shown)
    with place.numbers:
        facts(p, shown)
    rewrite(p)
    if shown.cell:
        edge_effect(p, shown)
        more_about_cell(p, shown)
    lead_to(ARITHMETIC)

    sections = SECTIONS_OF_PICTURES if p.reads_pictures else SECTIONS
    if (draw_section := sections[chosen_section(p.text, list(sections), key="attention_section")]) is not None:
        draw_section(p, shown)
    else:
        with st.container(key="attention path"):
            draw_step(p, shown, stepper(p, shown.path.rule))
        show_source(MultiHeadAttention.forward, attention_scores, attention_weights)
