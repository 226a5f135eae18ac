"""Positions: how the model knows the order of its tokens, and what it predicts if that order changes."""

import streamlit as st

from transformer.layers.positional_encodings import (
    measured_position_scores,
    reordered_positions,
    without_positions,
)
from ui.page.page import page
from ui.shell.choice import chosen_option
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_snippet, show_source
from views.positions import distance, encodings, rotary
from views.positions.another_order import another_order, can_reorder, choose_change, needs
from views.positions.code import snippet, sources
from views.positions.positions_view_model import positions_view_model
from views.positions.scheme import say_scheme

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
    place = {name: getattr(p.focus, name) for name in ("stack", "layer", "head", "token")}
    view_model = positions_view_model(p.trace, **place)
    # The page opens on what the order of the tokens is for; a table of numbers comes second.
    names = [*(["order"] if can_reorder(p) else []), *view_model.sections]
    section = None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if names:
            look = {"owner": tuple(names), "wrap": True, "label_visibility": labels()}
            section = chosen_option(p.text, "view", names, key="positions view", **look)
        if section == "order":
            choose_change(p)
    # the titles of the two heatmaps say which scheme is the model's
    if section != "order" and (section, view_model.scheme) != ("heatmap", "rotary"):
        say_scheme(view_model, p.text)
    if section == "order":
        another_order(p)
    elif section == "heatmap":
        (rotary.two_heatmaps if view_model.scheme == "rotary" else encodings.heatmap)(view_model, p.text)
    elif section:
        SECTIONS[section](view_model, p.text)
    show_source(*sources(view_model), measured_position_scores, without_positions, reordered_positions)
    show_snippet("positions", p.preamble + snippet(view_model))
