"""Lens: what would the model predict after layer k? Every layer read out as if it were the last."""

from ui.page.page import page
from views.lens import lens_sections as sections

VIEWS = {"layers": sections.readout, "author": sections.author}

with page("lens", needs=("token",), marks=sections.place_of, only=sections.stack_of) as p:
    view, row = sections.choose_view(p)
    VIEWS[view](p, row)
