"""Add & Norm: what do the residual connection and LayerNorm do?"""

from transformer.decoder import DecoderLayer
from transformer.encoder import EncoderLayer
from transformer.residual import residual_connection
from ui.page.page import Page, page
from ui.shell.choice import chosen_option
from ui.show.figures import show_source
from views.add_norm.add_norm_view_model import add_norm_view_model
from views.add_norm.norm_numbers import arithmetic, parameters, statistics
from views.add_norm.one_vector import choose_norm, one_vector
from views.add_norm.residual_growth import residual_stream, sublayer_updates
from views.view_models import second_token

SECTIONS = {
    "statistics": statistics,
    "arithmetic": arithmetic,
    "parameters": parameters,
    "stream": residual_stream,
    "updates": sublayer_updates,
}


def begins(p: Page) -> tuple[str, int]:
    """Begin at the token after the first: the vector of a token that starts every sentence says little."""
    return p.focus.stack, second_token(p.trace, p.focus.stack)


with page("add_norm", needs=("stack", "layer", "token"), begins=begins) as p:
    place = {"stack": p.focus.stack, "layer": p.focus.layer, "token": p.focus.token}
    view_model = add_norm_view_model(p.trace, choose_norm(p), **place)
    one_vector(p, view_model)
    section = chosen_option(p.text, "tab", list(SECTIONS), key="add norm view", label=p.text["more"], wrap=True)
    SECTIONS[section](p, view_model)
    layer = p.checkpoint.model.get_submodule(p.focus.stack).layers[p.focus.layer]
    in_order_of_the_paper = type(layer) in (EncoderLayer, DecoderLayer)
    show_source(type(layer.self_attention_norm), residual_connection if in_order_of_the_paper else type(layer).forward)
