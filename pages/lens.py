"""Lens: what would the model predict after layer k? Every layer read out as if it were the last."""

from ui.page.page import page
from views.lens.author import author
from views.lens.logit_lens import (
    choose_readout,
    choose_view,
    draw,
    explain,
    follow_word,
    place_of,
    stack_of,
)

with page("lens", needs=("token",), marks=place_of, only=stack_of) as p:
    view, row = choose_view(p)
    if view == "author":
        author(p, row)
        p.finish()
    shown = choose_readout(p, row)
    draw(p, shown)
    follow_word(p, shown)
    explain(p, shown)
