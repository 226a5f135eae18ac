"""Add & Norm: what do the residual connection and LayerNorm do?"""

import streamlit as st

import charts.figures.norms
from charts.toolkit.numbers import number
from transformer.analysis.layer_norm_steps import norm_kind, norm_names, norm_parameters, norm_statistics
from transformer.decoder import DecoderLayer
from transformer.encoder import EncoderLayer
from transformer.residual import residual_connection
from ui.shell.page import Page, page
from ui.shell.page_state import belongs_to
from ui.shell.presentation.presenter import labels
from ui.shell.selectors import chosen_option, tabs
from ui.show.figures import show_figure, show_formula, show_source
from views.add_norm.norm_arithmetic import norm_arithmetic
from views.add_norm.residual import residual_stream, say_order, sublayer_updates


def place_of(name: str) -> str:
    """What the texts call the place of a norm: "self_attention_norm", "final_norm", "embedding_norm" …"""
    *_, parent, last = name.split(".")
    return f"{parent}_norm" if last == "norm" else last


def choose_norm(p: Page, *, compare: bool = False) -> tuple[str, str]:
    """(name of the chosen LayerNorm, "normalized" or "output": what to compare its input with)."""
    names = {place_of(name): name for name in norm_names(p.trace, p.focus.stack, p.focus.layer)}
    first, after = next(iter(names)), "normalized"
    belongs_to("norm", tuple(names), default=first)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        more = {"wrap": True, "label_visibility": labels()}
        kind = chosen_option(p.text, "norm", list(names), key="norm", words=lambda text, name: text[name], **more)
        if compare:
            after = chosen_option(p.text, "after", ["normalized", "output"], key="norm after", **more)
    return names[kind], after


def statistics(p: Page) -> None:
    """Mean and standard deviation of every token, before and after."""
    name, after = choose_norm(p, compare=True)
    found = norm_statistics(p.trace, name, after=after)
    label = p.text[f"after_{after}"]
    show_figure(
        charts.figures.norms.norm_statistics(
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


def arithmetic(p: Page) -> None:
    """One token's numbers."""
    name, _ = choose_norm(p)
    norm_arithmetic(p, name)
    formula(p, name)


def parameters(p: Page) -> None:
    """γ and β."""
    name, _ = choose_norm(p)
    gain, bias, _ = norm_parameters(p.checkpoint, name)
    show_figure(
        charts.figures.norms.gain_and_bias(gain, bias=bias),
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
    views = {
        "statistics": statistics,
        "arithmetic": arithmetic,
        "parameters": parameters,
        "stream": residual_stream,
        "updates": sublayer_updates,
    }
    shown = tabs(p.text, [f"tab_{view}" for view in views], key="add norm view")
    for tab, draw in zip(shown, views.values(), strict=True):
        if tab.open:
            with tab:
                draw(p)
    stack = p.checkpoint.model.get_submodule(p.focus.stack)
    layer = stack.layers[p.focus.layer]
    norm = type(layer.self_attention_norm)
    if type(layer) in (EncoderLayer, DecoderLayer):
        show_source(norm, residual_connection)
    else:  # it adds in an order of its own
        show_source(norm, type(layer).forward)
