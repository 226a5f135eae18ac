"""Add & Norm: what do the residual connection and LayerNorm do?"""

from transformer.decoder import DecoderLayer
from transformer.encoder import EncoderLayer
from transformer.residual import residual_connection
from ui.page.page import Page, page
from views.add_norm import add_norm_sections as sections
from views.opening_tokens import second_token

SECTIONS = {
    "statistics": sections.statistics,
    "arithmetic": sections.arithmetic,
    "parameters": sections.parameters,
    "stream": sections.residual_stream,
    "updates": sections.sublayer_updates,
}


def begins(p: Page) -> tuple[str, int]:
    """Begin at the token after the first: the vector of a token that starts every sentence says little."""
    return p.focus.stack, second_token(p.trace, p.focus.stack)


with page("add_norm", needs=("stack", "layer", "token"), begins=begins) as p:
    norm = sections.choose_norm(p)
    sections.one_vector(p, norm)
    SECTIONS[p.option("tab", list(SECTIONS), key="add norm view", wrap=True)](p, norm)
    layer = p.checkpoint.model.get_submodule(p.focus.stack).layers[sections.layer_of(p)]
    in_order_of_the_paper = type(layer) in (EncoderLayer, DecoderLayer)
    p.code(type(layer.self_attention_norm), residual_connection if in_order_of_the_paper else type(layer).forward)
