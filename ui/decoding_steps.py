"""Decoding step by step: the walk through one text, its branches, the live reshaping and the guessing."""

from __future__ import annotations

import streamlit as st

from transformer import Decoding
from transformer.analysis.decoding_steps import n_forced, prompt_of
from ui import decoding_branches, decoding_guess, guard, writing
from ui.decoding_branches import ORIGINAL, Branch
from ui.decoding_walk import walk
from ui.page import Page
from ui.text import as_plain
from ui.writing import Settings


@st.fragment
def step_by_step(p: Page) -> None:
    """A text, one token at a time. When the reader rests at another step, only this is redrawn."""
    with guard():
        top, choice, sure = st.container(), st.container(), st.container()
        with top, st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            kind, seed = writing.choose_strategy(p)
            guess = st.toggle(p.text["guess"], key="guess", help=p.text["guess_help"], bind="query-params")
        reshaping = writing.NO_RESHAPING
        if kind == "sampling" and not guess:  # then the sliders change the text itself, not only the lower picture
            with choice:
                st.subheader(p.text["reshape"], anchor=False)
                reshaping = writing.choose_reshaping(p)
        settings = Settings(kind=kind, seed=seed, **reshaping)
        if guess:
            with top:
                decoding_guess.guess(p, writing.written(p, settings.strategy), settings)
            return
        with top:
            branch, step, decoding = _walk(p, settings)
        with choice:
            if kind == "sampling":
                writing.reshaping(p, decoding, settings, step)
            else:
                _live(p, decoding, step)
        with sure:
            st.subheader(p.text["confidence"], anchor=False)
            writing.sureness(p, decoding, step)
            writing.snippet(p, decoding, settings, step, forced=branch.forced)


@st.fragment
def _live(p: Page, decoding: Decoding, step: int) -> None:
    """Greedy choice does not mind the sliders: they redraw this one picture and nothing else."""
    with guard():
        st.subheader(p.text["reshape"], anchor=False)
        settings = Settings(kind="greedy", seed=0, **writing.choose_reshaping(p))
        writing.reshaping(p, decoding, settings, step)


def _walk(p: Page, settings: Settings) -> tuple[Branch, int, Decoding]:
    """The drawing of all steps, and the branches."""
    branches, branch = decoding_branches.current(p)
    decoding = writing.written(p, settings.strategy, forced=branch.forced or None)
    n_given = len(branch.forced) or n_forced(p.checkpoint, writing.given(p))
    before = p.checkpoint.tokenizer.sequence(prompt_of(p.checkpoint, p.focus.sentence))
    n_kept = None if branch is ORIGINAL else len(branch.kept)
    text = decoding_branches.identity(p, branch)
    step = walk(p, decoding, settings, text=text, before=before, n_given=n_given, n_kept=n_kept)
    st.caption(p.text["whole"].format(text=as_plain(decoding.text)))
    if writing.given(p):
        st.caption(p.text["forced"])
    if not decoding.finished:
        st.caption(p.text["unfinished"].format(count=len(decoding.tokens)))
    decoding_branches.force_another(p, decoding, step, branches)
    decoding_branches.show(p, settings, branches, branch)
    return branch, step, decoding
