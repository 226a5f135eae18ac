"""Decoding step by step: the walk through one text, its branches, the live reshaping and the guessing."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer import Decoding
from transformer.predictions.decoding_steps import n_forced
from transformer.runs.inputs import prompt_of
from ui.shell import choice
from ui.shell.fragments import fragment
from ui.shell.page import Page, guard
from ui.words.texts import as_plain
from views.decoding import branches, generation, word_guess
from views.decoding.branches import ORIGINAL, Branch
from views.decoding.generation import Settings
from views.decoding.walk import walk


@fragment
def step_by_step(p: Page) -> None:
    """A text, one token at a time. When the reader rests at another step, only this is redrawn."""
    with guard():
        drawing, how, below, live, sure = (st.container() for _ in range(5))  # the picture first, then its controls
        with how, st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            kind, seed = generation.choose_strategy(p)
            guessing = choice.toggle(p.text["guess"], key="guess", help=p.text["guess_help"])
        reshaping = generation.NO_RESHAPING
        if kind == "sampling" and not guessing:  # then the sliders change the text itself, not only the lower picture
            with live:
                sliders, bars = _sliders_and_bars(p)
            with sliders:
                reshaping = generation.choose_reshaping(p)
        settings = Settings(kind=kind, seed=seed, **reshaping)
        if guessing:
            with drawing:
                word_guess.guess(p, generation.written(p, settings.strategy), settings)
            return
        with below:
            branch, step, decoding = _walk(p, settings, drawing)
        if kind == "sampling":
            with bars:
                generation.reshaping(p, decoding, settings, step)
        else:
            with live:
                _live(p, settings, branch.forced, step)
        with sure:
            st.subheader(p.text["confidence"], anchor=False)
            generation.sureness(p, decoding, step)
            generation.snippet(p, decoding, settings, step, forced=branch.forced)


@fragment
def _live(p: Page, written_by: Settings, forced: tuple[int, ...], step: int) -> None:
    """Draw the sliders and the bars of one step; they do not change greedy choice, so nothing else is redrawn."""
    with guard():
        decoding = generation.written(p, written_by.strategy, forced=forced or None)
        sliders, bars = _sliders_and_bars(p)
        with sliders:
            settings = Settings(kind="greedy", seed=0, **generation.choose_reshaping(p))
        with bars:
            generation.reshaping(p, decoding, settings, step)


def _sliders_and_bars(p: Page) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Under their heading, beside each other: what a slider does is seen without scrolling."""
    st.subheader(p.text["reshape"], anchor=False)
    sliders, bars = st.columns([2, 7], gap="medium")
    return sliders, bars


def _walk(p: Page, settings: Settings, drawing: DeltaGenerator) -> tuple[Branch, int, Decoding]:
    """The drawing of all steps in its place, and the branches."""
    known, branch = branches.current(p)
    decoding = generation.written(p, settings.strategy, forced=branch.forced or None)
    n_given = len(branch.forced) or n_forced(p.checkpoint, generation.given(p), p.focus.sentence)
    before = p.checkpoint.tokenizer.sequence(prompt_of(p.checkpoint, p.focus.sentence))
    n_kept = None if branch is ORIGINAL else len(branch.kept)
    text = branches.identity(p, branch)
    step = walk(p, decoding, settings, text=text, before=before, n_given=n_given, n_kept=n_kept, place=drawing)
    st.caption(p.text["whole"].format(text=as_plain(decoding.text)))
    if generation.given(p):
        st.caption(p.text["forced"])
    if not decoding.finished:
        st.caption(p.text["unfinished"].format(count=len(decoding.tokens)))
    branches.force_another(p, decoding, step, known)
    branches.show(p, settings, known, branch)
    return branch, step, decoding
