"""Decoding: how do words come out?"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from transformer import decode
from transformer.analysis.decoding_steps import n_forced, prompt_of
from transformer.analysis.leave_one_out import leave_one_out
from transformer.analysis.masked_tokens import fillings
from transformer.models import Classifier
from transformer.strategies import reshape_logits
from ui import answers, guard, page, writing
from ui import focus as shared_focus
from ui.encoder_answers import classify, fill_blanks
from ui.loading import config_of
from ui.page import Page
from ui.show import show_source
from ui.stepper import stepper
from ui.text import as_plain


@st.fragment
def write(p: Page) -> None:
    """A text, step by step. Stepping and sliders redraw only this."""
    with guard():
        walk, choice, sure = st.container(), st.container(), st.container()
        with choice:
            st.subheader(p.text["reshape"], anchor=False)
            reshaping = writing.choose_reshaping(p)
        with walk:
            kind, seed = writing.choose_strategy(p)
            settings = writing.Settings(kind=kind, seed=seed, **reshaping)
            step, decoding = walk_through(p, settings)
        with choice:
            writing.reshaping(p, decoding, settings, step)
        with sure:
            st.subheader(p.text["confidence"], anchor=False)
            writing.sureness(p, decoding, step)
            writing.snippet(p, decoding, settings, step)


def walk_through(p: Page, settings: writing.Settings) -> tuple:
    """The stepper, and what belongs to its step; returns (step, decoding)."""
    pads = p.focus.pads if p.checkpoint.config.has_encoder else 0
    given = p.focus.target if p.focus.target.strip() else ""
    decoding = answers.decoding(p.checkpoint, p.focus.sentence, settings.strategy, forced=given, pads=pads)
    n_given = n_forced(p.checkpoint, given)
    before = p.checkpoint.tokenizer.sequence(prompt_of(p.checkpoint, p.focus.sentence))
    text = (p.focus.checkpoint, p.focus.sentence, given, pads)
    step = stepper(decoding.tokens, text=text, before=before, n_given=n_given)
    writing.describe(p, decoding, settings, step, n_given=n_given)
    with st.container(horizontal=True):
        with st.container():
            writing.candidates(p, decoding, step)
        with st.container():
            writing.attention(p, decoding, step)
    st.caption(p.text["whole"].format(text=as_plain(decoding.text)))
    if given:
        st.caption(p.text["forced"])
    if not decoding.finished:
        st.caption(p.text["unfinished"].format(count=len(decoding.tokens)))
    return step, decoding


def kind_of_answer() -> str:
    """ "text", "blanks" or "class"; known before the page begins, because the page's frame depends on it."""
    try:
        config = config_of(shared_focus.current().checkpoint)
    except (OSError, ValueError):  # the frame says what is wrong with the checkpoint
        return "text"
    return "text" if config.has_decoder else "class" if config.n_classes else "blanks"


answer = kind_of_answer()
needs = {"text": ("layer", "head"), "blanks": ("layer", "head", "token"), "class": ()}[answer]
with page("decoding", needs=needs, strip=answer != "text") as p:
    if answer == "text":
        if p.focus.stack != "decoder":  # layers are counted in the stack that writes
            p.focus = replace(p.focus, layer=min(p.focus.layer, p.checkpoint.config.n_decoder_layers - 1))
        write(p)
        show_source(decode, reshape_logits)
    elif answer == "blanks":
        fill_blanks(p)
        show_source(fillings)
    else:
        classify(p)
        show_source(leave_one_out, Classifier.forward)
