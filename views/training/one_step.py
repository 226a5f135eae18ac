"""The section of Training about one step: loss before and after, gradients by block, moved rows of E."""

import math

import plotly.graph_objects as go
import streamlit as st

from charts.figures.gradients import gradient_rows
from charts.figures.heat_maps import heat_map
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import number
from charts.toolkit.style import three_digits
from charts.toolkit.words import say
from transformer.layers.gradient_step import TrainingStep
from ui.page.page import Page
from ui.sections.training_step import loss_in_words, moved_in_words, take_step
from ui.show.figures import show_figure

_KINDS = ("self_attention", "cross_attention", "feed_forward", "norms")  # blocks inside a layer
_FORMULAS = {"adam": r"E \leftarrow E - \eta \, \frac{g}{|g| + 10^{-8}}", "sgd": r"E \leftarrow E - \eta \, g"}


def one_step(p: Page) -> None:
    """Draw the loss before and after one step, the gradient of every block, and how far rows of E move."""
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    with controls:
        optimizer = p.option("step_optimizer", ["adam", "sgd"], key="training optimizer")
    step = take_step(p, controls, optimizer=optimizer)
    with controls:
        change = step.loss_after - step.loss_before
        look = ("green", "down") if change < 0 else ("red", "up")
        fell = dict(zip(("delta_color", "delta_arrow"), look, strict=True))
        st.metric(p.text["step_before"], three_digits(step.loss_before), width="content")
        st.metric(p.text["step_after"], three_digits(step.loss_after), three_digits(change), width="content", **fell)
    st.markdown(loss_in_words(p, step))
    show_figure(_by_block(p, step), name="step-blocks", caption=p.md("step_blocks"))
    with st.grid(2, min_column_width=430):
        with st.container():
            figure = gradient_rows(step.gradient, tokens=step.read, what=p.words("step_gradient"))
            show_figure(figure, name="step-gradients", caption=p.md("step_gradient_caption"))
        with st.container():
            figure = gradient_rows(step.moved, tokens=step.read)
            show_figure(figure, name="step-moves", caption=p.md(f"step_moves_{optimizer}"))
    width = p.checkpoint.config.d_model
    most, rate = step.rate * math.sqrt(width), number(f"{step.rate:g}")
    p.formula(_FORMULAS[optimizer], f"step_formula_{optimizer}", rate=rate, width=width, most=most)
    st.markdown(moved_in_words(p, step))
    p.code()


def _by_block(p: Page, step: TrainingStep) -> go.Figure:
    """Return the gradient of all blocks: rows are locations of the model, columns kinds of blocks."""
    text, shared = p.text, p.checkpoint.config.tie_embeddings
    outside = text["step_outside"]
    found: dict[str, dict[str, float]] = {text[f"step_{kind}"]: {} for kind in ("outside", *_KINDS)}
    places: dict[str, None] = {}
    for block in step.blocks:
        name = text[f"step_{block.part}"]
        if block.layer is not None:
            place, kind = _in_stack(block.stack, block.layer), name
        else:
            part = text["step_shared"] if shared and block.part == "embedding" else _in_stack(block.stack, name)
            place, kind = p.words("step_classifier", part=name) if block.stack == "classifier" else part, outside
        places[place] = None
        found[kind][place] = block.gradient
    kinds = [kind for kind, values in found.items() if values]
    lengths = [[found[kind].get(place, math.nan) for kind in kinds] for place in places]
    return heat_map(
        lengths,
        rows=Axis(say("location"), list(places)),
        columns=Axis(say("kind_block"), kinds),
        hover=f"%{{y}}, %{{x}}<br>{say('length_gradient')}",
        value=say("length_gradient"),
        signed=False,
        gap=2,
        texts=[["" if math.isnan(length) else three_digits(length) for length in row] for row in lengths],
    )


def _in_stack(stack: str, what: int | str) -> str:
    return say("encoder", layer=what) if stack == "encoder" else say("decoder", layer=what)
