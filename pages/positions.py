"""Positions: how the model knows the order of its tokens, and what it predicts if that order changes."""

import streamlit as st

from transformer.layers.positional_encodings import (
    measured_position_scores,
    reordered_positions,
    without_positions,
)
from ui.shell.choice import chosen_option
from ui.shell.page import page
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_snippet, show_source
from views.positions import distance, encodings, rotary
from views.positions.another_order import another_order, can_reorder, choose_change, needs
from views.positions.code import snippet, sources
from views.positions.scheme import choose_scheme, chosen_scheme, say_whose

SECTIONS = {
    "waves": encodings.waves,
    "similarity": encodings.similarity,
    "sum": encodings.token_plus_position,
    "angles": rotary.angles,
    "bias": distance.bias,
    "terms": distance.position_terms,
    "distance": distance.by_distance,
}

with page("positions", needs=needs) as p:
    view_model = chosen_scheme(p)
    # The page opens on what the order of the tokens is for; a table of numbers comes second.
    names = [*(["order"] if can_reorder(p) else []), *view_model.sections]
    section = None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if names:
            look = {"owner": tuple(names), "wrap": True, "label_visibility": labels()}
            section = chosen_option(p.text, "view", names, key="positions view", **look)
        choose_change(p) if section == "order" else choose_scheme(p)
    # the titles of the figures say which scheme is the model's
    both_schemes = section == "heatmap" and view_model.scheme == "rotary"
    if section != "order" and not (view_model.is_own and both_schemes):
        say_whose(view_model, p.text)
    if section == "order":
        another_order(p)
    elif section == "heatmap":
        (rotary.two_heatmaps if view_model.scheme == "rotary" else encodings.heatmap)(view_model, p.text)
    elif section:
        SECTIONS[section](view_model, p.text)
    show_source(*sources(view_model, section), measured_position_scores, without_positions, reordered_positions)
    show_snippet("positions", p.preamble + snippet(view_model))
