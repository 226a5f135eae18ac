"""One training step on the sentence: its effect on E, or on the whole model."""

import math

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.figures.gradients import gradient_by_block, gradient_rows
from charts.toolkit.numbers import number, whole
from charts.toolkit.style import three_digits
from charts.toolkit.words import say
from transformer.layers.gradient_step import TrainingStep, training_step
from ui.compute.jobs import jobs
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.show.figures import show_figure, show_formula, show_snippet, show_source
from ui.words.texts import common, page_text, without_pictures

_RATES = (0.0001, 0.001, 0.01, 0.1)
_KINDS = (
    "self_attention",
    "cross_attention",
    "feed_forward",
    "norms",
    "convolution_weights",
)  # blocks inside a layer


def one_training_step(p: Page) -> None:
    """Show which rows of E get a gradient from this sentence, and how far they move."""
    text = page_text("embeddings")
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    step, _ = _step(p, controls, optimizer="sgd")
    moved, how = step.moved, text["how_measured"]
    if step.by_projection is not None and step.tied:
        ways = {"both": moved, "lookup": step.by_lookup, "projection": step.by_projection}
        with controls:
            way = chosen_option(text, "way", list(ways), key="training way", help=text["way_help"])
        moved, how = ways[way], how if way == "both" else text["how_part"]
    st.markdown(f"{text['training']} {_loss(p, step)}")
    show_figure(
        gradient_rows(moved, tokens=step.read), name="training-step", caption=text["training_caption"].format(how=how)
    )
    _who_moved(p, step)


def step_in_detail(p: Page) -> None:
    """Draw the section of the Training page: loss before and after, gradients by block, moved rows of E."""
    text = p.text
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    with controls:
        optimizer = chosen_option(text, "step", ["adam", "sgd"], key="training optimizer", label=text["step_optimizer"])
    step, arguments = _step(p, controls, optimizer=optimizer)
    adam = step.optimizer == "adam"
    with controls:
        change = step.loss_after - step.loss_before
        st.metric(text["step_before"], three_digits(step.loss_before), width="content")
        fell = (
            {"delta_color": "green", "delta_arrow": "down"}
            if change < 0
            else {"delta_color": "red", "delta_arrow": "up"}
        )
        st.metric(text["step_after"], three_digits(step.loss_after), three_digits(change), width="content", **fell)
    st.markdown(_loss(p, step))
    show_figure(_by_block(p, step), name="step-blocks", caption=text["step_blocks"])
    with st.grid(2, min_column_width=430):
        with st.container():
            what = text["step_gradient"]
            figure = gradient_rows(step.gradient, tokens=step.read, what=what)
            show_figure(figure, name="step-gradients", caption=text["step_gradient_caption"])
        with st.container():
            figure = gradient_rows(step.moved, tokens=step.read)
            show_figure(figure, name="step-moves", caption=text[f"step_moves_{step.optimizer}"])
    width = p.checkpoint.config.d_model
    show_formula(
        r"E \leftarrow E - \eta \, \frac{g}{|g| + 10^{-8}}" if adam else r"E \leftarrow E - \eta \, g",
        caption=text[f"step_formula_{step.optimizer}"].format(
            rate=number(f"{step.rate:g}"), width=width, most=three_digits(step.rate * math.sqrt(width))
        ),
    )
    _who_moved(p, step)
    show_source(training_step)
    show_snippet("step", _snippet(p, arguments))


def _step(p: Page, controls: DeltaGenerator, *, optimizer: str) -> tuple[TrainingStep, dict[str, object]]:
    """Return the training step with the settings of the controls, and these settings."""
    text, config = page_text("embeddings"), p.checkpoint.config
    arguments: dict[str, object] = {"stack": p.focus.stack, "optimizer": optimizer}
    with controls:
        rate = choice.select_slider(
            text["rate"],
            _RATES,
            default=0.001 if optimizer == "adam" else 0.01,
            key=f"training rate {optimizer}",
            help=text["rate_help"] if optimizer == "sgd" else None,
            width=260,
        )
        if config.n_classes:
            names, own = [without_pictures(each) for each in config.class_names], without_pictures(p.trace.text)
            name = choice.buttons(
                text["class"],
                names,
                default=own,
                key="training class",
                owner=(p.checkpoint.fingerprint, p.sentence),
            )
            arguments["label"] = names.index(name)
    arguments["rate"] = rate
    if not config.has_decoder and not config.n_classes:  # a masked-token model predicts the followed token
        arguments["masked"] = min(p.focus.token, len(_real(p)) - 1)
    trace = p.trace
    step = jobs.result(
        p.run,
        ("training step", *arguments.items()),
        lambda _: training_step(trace, **arguments),
        doing=common("wait.step"),
    )
    if step is None:  # cancelled
        p.finish()
    return step, arguments


def _loss(p: Page, step: TrainingStep) -> str:
    """Return the prediction, the change of the loss, and a note that the model on the page is unchanged."""
    text, config = page_text("embeddings"), p.checkpoint.config
    asked = "asked_next" if config.has_decoder else "asked_class" if config.n_classes else "asked_blank"
    end = text["training_worse"] if step.loss_after > step.loss_before else text["training_copy"]
    loss = text["training_loss"].format(
        asked=text[asked].format(count=step.n_asked),
        before=three_digits(step.loss_before),
        after=three_digits(step.loss_after),
    )
    return f"{loss} {end}"


def _who_moved(p: Page, step: TrainingStep) -> None:
    """Explain why these rows moved and no others."""
    text, config = page_text("embeddings"), p.checkpoint.config
    still = {"still": whole(int((step.moved == 0).sum())), "count": whole(len(step.moved))}
    if config.n_classes:
        st.markdown(text["classifier"].format(**still))
    elif step.tied:
        st.markdown(text["tied"])
    else:
        st.markdown(f"{text['untied'].format(**still)} {text['untied_other']}")
    if not config.has_decoder and not config.n_classes and step.read.ids != tuple(token.id for token in _real(p)):
        st.markdown(text["hidden_word"].format(mask=p.checkpoint.tokenizer.display(p.checkpoint.special.mask)))


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
            place, kind = text["step_classifier"].format(part=name) if block.stack == "classifier" else part, outside
        places[place] = None
        found[kind][place] = block.gradient
    kinds = [kind for kind, values in found.items() if values]
    lengths = [[found[kind].get(place, math.nan) for kind in kinds] for place in places]
    return gradient_by_block(lengths, kinds=kinds, places=list(places))


def _in_stack(stack: str, what: int | str) -> str:
    return say("encoder", layer=what) if stack == "encoder" else say("decoder", layer=what)


def _snippet(p: Page, arguments: dict[str, object]) -> str:
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return (
        p.preamble
        + "from transformer.layers.gradient_step import training_step\n\n"
        + f"step = training_step(trace, {written})\n"
        + "print(step.loss_before, step.loss_after)\n"
        + "for block in step.blocks:\n"
        + "    print(block.stack, block.layer, block.part, block.numbers, block.gradient, block.moved)\n"
        + "for token in step.read:\n"
        + "    print(token.display, step.gradient[token.id], step.moved[token.id])\n"
    )


def _real(p: Page) -> list:
    """Return the tokens without padding."""
    return [token for token in p.trace.tokens(p.focus.stack) if token.role != "pad"]
