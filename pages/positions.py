"""Positions: how the model knows the order of its tokens, and what it predicts if that order changes."""

from ui.page.page import page
from views.positions import positions_sections as sections

VIEWS = {
    "order": sections.another_order,
    "heatmap": sections.heatmap,
    "waves": sections.waves,
    "similarity": sections.similarity,
    "sum": sections.token_plus_position,
    "angles": sections.angles,
    "bias": sections.bias,
    "distance": sections.by_distance,
}

with page("positions", needs=sections.needs) as p:
    view = sections.choose_view(p)
    if not sections.names_the_scheme(p, view):
        sections.say_scheme(p)
    if view:
        VIEWS[view](p)
    sections.code(p)
