"""Feed-forward: what happens to each token on its own?"""

from ui.shell.choice import chosen_option
from ui.shell.page import page
from ui.show.figures import show_source
from views.feed_forward.feed_forward_view_model import feed_forward_view_model
from views.feed_forward.readable import begins, readable, readable_units_of
from views.feed_forward.strongest import strongest
from views.feed_forward.unit_firing import firing
from views.feed_forward.units import all_tokens, layer_formula, one_token, words_of_units

OPENINGS = {"readable": readable, "strongest": strongest}
FIRST = tuple(OPENINGS)
SECTIONS = {"token": one_token, "words": words_of_units, "sentence": all_tokens, "fires": firing}
WITHOUT_WORDS = ("token", "sentence")  # the other sections compare units with words, or look for units in sentences

with page("feed_forward", needs=("stack", "layer", "token"), begins=begins) as p:
    view_model = feed_forward_view_model(p.trace, stack=p.focus.stack, layer=p.focus.layer, token=p.focus.token)
    first = FIRST if not p.token_is_chosen else FIRST[::-1]  # a token that was clicked is what the reader asks about
    if not readable_units_of(p):
        first = ("strongest",)
    elif chosen_option(p.text, "first", first, key="feed-forward first", owner=first, wrap=True) != first[0]:
        first = first[::-1]
    OPENINGS[first[0]](p, view_model)
    names = list(WITHOUT_WORDS if p.reads_pictures else SECTIONS)
    section = chosen_option(p.text, "tab", names, key="feed-forward view", label=p.text["more"], wrap=True)
    SECTIONS[section](p, view_model)
    layer_formula(view_model, p.text)
    show_source(type(p.checkpoint.model.get_submodule(view_model.name)))
