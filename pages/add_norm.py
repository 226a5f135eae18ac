"""Add & Norm: what do the residual connection and LayerNorm do?"""

from charts.toolkit.numbers import number
from transformer.decoder import DecoderLayer
from transformer.encoder import EncoderLayer
from transformer.layers.norms import norm_kind, norm_parameters, norm_statistics
from transformer.residual import residual_connection
from ui.shell.choice import chosen_option
from ui.shell.page import Page, page
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_figure, show_formula, show_source
from views.add_norm import norm_figures
from views.add_norm.norm_arithmetic import norm_arithmetic
from views.add_norm.one_vector import choose_norm, one_vector, place_of
from views.add_norm.residual_growth import residual_stream, say_order, sublayer_updates


def statistics(p: Page, name: str) -> None:
    """Mean and standard deviation of every token, before and after."""
    after = chosen_option(p.text, "after", ["normalized", "output"], key="norm after", label_visibility=labels())
    found = norm_statistics(p.trace, name, after=after)
    label = p.text[f"after_{after}"]
    show_figure(
        norm_figures.norm_statistics(
            found.mean_before,
            std_before=found.std_before,
            mean_after=found.mean_after,
            std_after=found.std_after,
            tokens=p.trace.tokens(p.focus.stack),
            after=label,
        ),
        name="layer-norm-statistics",
        caption=p.text["statistics_caption"].format(width=p.trace[f"{name}.input"].shape[-1], after=label),
        alt=p.text["statistics_alt"].format(norm=norm_kind(p.checkpoint, name)),
    )
    formula(p, name)


def arithmetic(p: Page, name: str) -> None:
    """One token's numbers."""
    norm_arithmetic(p, name)
    formula(p, name)


def parameters(p: Page, name: str) -> None:
    """γ and β."""
    gain, bias, _ = norm_parameters(p.checkpoint, name)
    show_figure(
        norm_figures.gain_and_bias(gain, bias=bias),
        name="layer-norm-parameters",
        caption=p.text["parameters_caption" if bias is not None else "parameters_caption_rms"],
        alt=p.text["parameters_alt"].format(norm=norm_kind(p.checkpoint, name)),
    )
    formula(p, name)


def formula(p: Page, name: str) -> None:
    """Where this norm stands, and what it computes, with the shapes of this sentence."""
    place, kind = place_of(name), norm_kind(p.checkpoint, name)
    _, bias, epsilon = norm_parameters(p.checkpoint, name)
    tokens, width = p.trace[f"{name}.input"].shape
    say_order(p)
    sublayer = p.text.get(place.replace("_output_norm", "_norm"), "")
    show_formula(p.text[f"{_order(p, place)}_formula"].format(sublayer=sublayer, norm=kind))
    rms = "" if bias is not None else "_rms"
    show_formula(
        p.text[f"norm_formula{rms}"],
        caption=p.text[f"formula_caption{rms}"].format(tokens=tokens, width=width, epsilon=number(f"{epsilon:g}")),
    )


def _order(p: Page, place: str) -> str:
    """Which formula says where this norm stands."""
    if place in ("final_norm", "embedding_norm", "vocabulary_projection_norm", "convolution_norm"):
        return place.removesuffix("_norm")
    config = p.checkpoint.config
    block = getattr(config, "block", "sequential")
    return block if block != "sequential" else config.norm


with page("add_norm", needs=("stack", "layer", "token")) as p:
    norm_name = choose_norm(p)
    one_vector(p, norm_name)
    views = {
        "statistics": statistics,
        "arithmetic": arithmetic,
        "parameters": parameters,
        "stream": lambda p, name: residual_stream(p),
        "updates": lambda p, name: sublayer_updates(p),
    }
    views[chosen_option(p.text, "tab", list(views), key="add norm view", label=p.text["more"], wrap=True)](p, norm_name)
    stack = p.checkpoint.model.get_submodule(p.focus.stack)
    layer = stack.layers[p.focus.layer]
    norm = type(layer.self_attention_norm)
    if type(layer) in (EncoderLayer, DecoderLayer):
        show_source(norm, residual_connection)
    else:  # it adds in an order of its own
        show_source(norm, type(layer).forward)
