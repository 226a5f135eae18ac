"""Decoding step by step: the steps of one text, its branches, and live reshaping."""

from dataclasses import asdict
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.figure import CanvasFigure
from charts.canvas.written_steps import StepBars, written_steps
from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.predictions.decoding_steps import StepAttention
from ui.page.page import Page, guard
from ui.shell.fragments import fragment
from ui.show.drawings import show_steps
from ui.show.figures import show_figure, show_formula, show_snippet
from ui.words.model_terms import logits_formula
from ui.words.texts import as_plain
from views.decoding import branches, decoding_figures, stepper
from views.decoding.decoding_parts import (
    choose_attention,
    choose_reshaping,
    choose_strategy,
    location_of,
    of_heads,
    what_fills,
    written,
)
from views.decoding.decoding_view_model import DecodingChoices, WrittenStep, WrittenText

_STYLE = Path(__file__).with_name("steps.css")


def step_by_step(p: Page) -> None:
    """Draw a text, one token at a time. Another step redraws only this part."""
    st.html(_STYLE)
    _step_by_step(p)


@fragment
def _step_by_step(p: Page) -> None:
    with guard():
        drawing, how, below, live, sure = (st.container() for _ in range(5))  # the figure first, then its controls
        with how, st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            chosen = choose_strategy(p)
        samples = chosen["strategy"] == "sampling"
        if samples:  # the sliders change the text itself here, not only the lower figure
            with live:
                sliders, bars = _sliders_and_bars(p)
            with sliders:
                chosen |= choose_reshaping(p)
        known, branch = branches.current(p)
        step = stepper.asked(text=branches.identity(p, branch))
        if step is None and p.focus.lesson:
            step = 0  # lessons follow a text from its beginning
        chosen |= {"branches": known, "branch": branch, "step": step}
        with below:
            choices = DecodingChoices(**chosen, **choose_attention(p))
        text = _written_text(p, choices)
        stepper.settle(text.step, text=branches.identity(p, branch))
        with drawing, st.container(gap="xsmall"):
            with st.container(key="step figure"):
                show_steps(_figure(p, text), key=stepper.KEY, on_stop=stepper.rest_at)
            st.caption(p.text[f"walk_{text.kind}_caption"])
        with below:
            _show_text(p, text)
        if samples:
            with bars:
                _show_reshaping(p, text)
        else:
            with live:
                _live(p, choices)
        with sure:
            st.subheader(p.text["confidence"], anchor=False)
            _show_confidence(p, text)
            _show_snippet(p, text)


@fragment
def _live(p: Page, choices: DecodingChoices) -> None:
    """Draw the sliders and bars of one step; they do not change greedy text, so nothing else is redrawn."""
    with guard():
        sliders, bars = _sliders_and_bars(p)
        with sliders:
            text = _written_text(p, DecodingChoices(step=choices.step, branch=choices.branch, **choose_reshaping(p)))
        with bars:
            _show_reshaping(p, text)


def _sliders_and_bars(p: Page) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Draw the sliders under their heading, side by side, so that their effect stays visible."""
    st.subheader(p.text["reshape"], anchor=False)
    sliders, bars = st.columns([2, 7], gap="medium")
    return sliders, bars


def _written_text(p: Page, choices: DecodingChoices) -> WrittenText:
    """Return the text in focus and, if branches are compared, the original and all of them."""
    forced = {choices.branch.forced}
    if choices.branches:
        forced |= {(), *(branch.forced for branch in choices.branches)}
    texts = {ids: written(p, choices.writes_by, forced=ids) for ids in forced}
    return WrittenText(p.run, location_of(p), choices, texts)


def _figure(p: Page, text: WrittenText) -> CanvasFigure:
    """Draw everything that belongs to the steps, which is sent to the browser in one message."""
    attention = [text.attention_at(index) for index in range(len(text.steps))]
    bars = [_bars(p, text, step, seen) for step, seen in zip(text.steps, attention, strict=True)]
    return written_steps(
        bars,
        tokens=text.decoding.tokens,
        key=attention[-1].key,
        of=of_heads(p, text),
        before=text.prompt,
        n_given=text.n_given,
        begin=stepper.begin(),
    )


def _bars(p: Page, text: WrittenText, step: WrittenStep, seen: StepAttention) -> StepBars:
    """Return the sentence about one step, and its bars."""
    values, ids = what_fills(p, step), [candidate.id for candidate in step.candidates]
    return StepBars(
        said=tuple([piece.format(**values) for piece in p.text[f"comes_{step.how}"].split("**")]),
        candidates=tuple([candidate.display for candidate in step.candidates]),
        probabilities=tuple([candidate.probability for candidate in step.candidates]),
        rest=step.rest,
        chosen=ids.index(step.chosen.id),
        weights=seen.of(text.head),
        allowed=seen.allowed,
        rank=step.rank,
    )


def _show_text(p: Page, text: WrittenText) -> None:
    """Draw the whole text and its branches."""
    st.caption(p.text["whole"].format(text=as_plain(text.decoding.text)))
    if text.given and text.adds_words:
        st.caption(p.text["forced"])
    if not text.decoding.finished:
        st.caption(p.text["unfinished"].format(count=len(text.decoding.tokens)))
    branches.force_another(p, text)
    branches.show(p, text)


def _show_reshaping(p: Page, text: WrittenText) -> None:
    """Draw the candidates from logits to sampling probabilities, with the formula in these shapes."""
    shaped, choices = text.reshaped, text.choices
    rules = [p.text["rule_k"].format(k=choices.top_k)] if choices.top_k else []
    rules += [p.text["rule_p"].format(p=three_digits(choices.top_p))] if choices.top_p < 1 else []
    show_figure(
        decoding_figures.reshaping(
            pd.DataFrame([asdict(row) for row in shaped.rows]),
            temperature=choices.temperature,
            rule=", ".join(rules) or p.text["rule_none"],
            given=text.step < text.n_given,
        ),
        name="from-logits-to-a-choice",
        room=440,
        caption=p.text["reshape_caption"].format(
            step=text.step + 1, kept=whole(shaped.n_kept), possible=whole(shaped.n_possible)
        )
        + (p.text["reshape_cut"] if shaped.n_kept < shaped.n_possible else "")
        + (p.text["reshape_greedy"] if choices.strategy == "greedy" else ""),
        alt=p.text["reshape_alt"],
    )
    config = text.checkpoint.config
    matrix = "E^\\top" if config.tie_embeddings else "W"
    projection = text.checkpoint.model.decoder.vocabulary_projection
    show_formula(
        p.text["formula"].format(logits=logits_formula(projection, "h", matrix)),
        caption=p.text["formula_caption"].format(
            width=config.d_model,
            matrix="Eᵀ" if config.tie_embeddings else "W",
            vocabulary=whole(config.vocabulary_size),
            possible=whole(shaped.n_possible),
            temperature=three_digits(choices.temperature),
            kept=whole(shaped.n_kept),
        ),
    )


def _show_confidence(p: Page, text: WrittenText) -> None:
    """Draw the probability of every token of the output at its step."""
    sure = text.confidence
    show_figure(
        decoding_figures.answer_confidence(
            sure.probability, tokens=text.decoding.tokens, runner_up=sure.runner_up, current=text.step
        ),
        name="confidence",
        caption=p.text["confidence_step"].format(step=text.step + 1)
        + p.text["confidence_caption"].format(
            sum=three_digits(sure.log_probability),
            whole=three_digits(float(sure.probability.prod())),
            typical=three_digits(sure.typical),
        ),
        alt=p.text["confidence_alt"],
    )


def _show_snippet(p: Page, text: WrittenText) -> None:
    """Draw Python that computes the step outside of the app."""
    chosen, forced = text.decoding.steps[text.step].chosen, text.choices.branch.forced
    show_snippet(
        "generation",
        f"import transformer\n\n{p.load_line}"
        f"decoding = transformer.decode(checkpoint, {text.arguments_of(text.choices.writes_by, forced=forced)})\n"
        f"print(repr(decoding.text))\n"
        f"step = decoding.steps[{text.step}]\n"
        f"print(step.chosen.display, step.chosen.probability)  # {chosen.display} {chosen.probability:.7g}\n"
        f"print(step.candidates[:3], step.logits.shape)\n",
    )
