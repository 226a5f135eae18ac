"""Feed-forward: what happens inside a token?"""

from charts.toolkit.numbers import whole
from ui.shell.choice import chosen_option
from ui.shell.page import Page, page
from ui.show.figures import show_formula, show_source
from views.feed_forward.strongest import strongest
from views.feed_forward.unit_firing import firing
from views.feed_forward.units import all_tokens, is_gated, one_token, words_of_units

FUNCTIONS = {
    "relu": r"\text{ReLU}",
    "gelu": r"\text{GELU}",
    "gelu_new": r"\text{GELU}_{\tanh}",
    "gelu_tanh": r"\text{GELU}_{\tanh}",
    "quick_gelu": r"\text{GELU}_{\text{quick}}",
    "silu": r"\text{SiLU}",
    "tanh": r"\tanh",
}


def formula(p: Page) -> None:
    """The layer with the shapes of this sentence."""
    config, name = p.checkpoint.config, f"{p.focus.stack}.layers.{p.focus.layer}.feed_forward"
    gated = is_gated(p)
    biased = p.checkpoint.model.get_submodule(f"{name}.output_projection").bias is not None
    b = {part: f" + b_{part}" if biased else "" for part in "12g"}
    inner = rf"x W_1{b['1']}"
    if gated:
        inner = rf"\big({FUNCTIONS[config.activation]}(x W_g{b['g']}) \odot ({inner})\big)"
    else:
        inner = rf"{FUNCTIONS[config.activation]}({inner})"
    caption = p.text["formula_caption_gated" if gated else "formula_caption" if biased else "formula_caption_unbiased"]
    sizes = {"width": config.d_model, "units": whole(p.trace[f"{name}.hidden"].shape[-1])}
    if gated and biased:
        caption += f" {p.text['formula_biases_gated']}"
    show_formula(
        rf"\text{{FFN}}(x) = {inner}\, W_2{b['2']}",
        caption=caption.format(tokens=len(p.trace.tokens(p.focus.stack)), **sizes),
    )


with page("feed_forward", needs=("stack", "layer", "token")) as p:
    strongest(p)
    views = {"token": one_token, "words": words_of_units, "sentence": all_tokens, "fires": firing}
    if p.reads_pictures:  # units are compared with words, and looked for in sentences
        views = {name: views[name] for name in ("token", "sentence")}
    views[chosen_option(p.text, "tab", list(views), key="feed-forward view", label=p.text["more"], wrap=True)](p)
    formula(p)
    show_source(type(p.checkpoint.model.get_submodule(f"{p.focus.stack}.layers.{p.focus.layer}.feed_forward")))
