"""Feed-forward: what happens inside a token?"""

from ui.page.page import page
from ui.shell.choice import chosen_option
from ui.show.figures import show_source
from views.feed_forward.feed_forward_view_model import feed_forward_view_model
from views.feed_forward.one_unit import begins, choose_one_unit, needs, one_unit, only_stack
from views.feed_forward.strongest import strongest
from views.feed_forward.unit_firing import firing
from views.feed_forward.units import all_tokens, layer_formula, one_token, words_of_units

SECTIONS = {
    "token": one_token,
    "strongest": strongest,
    "words": words_of_units,
    "sentence": all_tokens,
    "fires": firing,
}

with page("feed_forward", needs=needs, begins=begins, only=only_stack) as p:
    unit = choose_one_unit(p)
    view_model = feed_forward_view_model(p.trace, stack=unit.stack, layer=unit.layer, token=unit.position)
    one_unit(p, view_model, unit)
    section = chosen_option(p.text, "tab", list(SECTIONS), key="feed-forward view", label=p.text["more"], wrap=True)
    SECTIONS[section](p, view_model)
    layer_formula(view_model, p.text)
    show_source(type(p.checkpoint.model.get_submodule(view_model.name)))
