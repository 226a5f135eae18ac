"""Predict, then reveal: a student picks the next word before the model's candidates are shown."""

import streamlit as st

from charts.toolkit.style import three_digits
from transformer import Decoding
from transformer.predictions.decoding_steps import guess_options, n_forced
from transformer.runs.inputs import prompt_of
from ui.shell.guidance.way import opened, way_to
from ui.shell.page import Page
from ui.words.texts import as_plain
from views.decoding import generation

_STATE, _ANSWER = "guesses", "guess answer"


def guess(p: Page, decoding: Decoding, settings: generation.Settings) -> None:
    """The text up to here, four words to choose from, and after the choice everything that the step shows."""
    n_given = n_forced(p.checkpoint, generation.given(p), p.focus.sentence)
    text = (p.focus.checkpoint, p.focus.sentence, generation.given(p), p.run.source_pads, decoding.tokens.ids)
    state = st.session_state.get(_STATE)
    if state is None or state["text"] != text:
        state = st.session_state[_STATE] = {"text": text, "step": min(n_given, len(decoding.tokens)), "guesses": {}}
    step, guesses = state["step"], state["guesses"]
    _score(p, decoding, guesses)
    if step >= len(decoding.tokens):
        st.success(p.text["guess_end"].format(text=as_plain(decoding.text)), icon=":material/flag:")
        st.button(p.text["guess_again"], icon=":material/replay:", key="guess again", on_click=_begin_again)
        return
    before = [*prompt_of(p.checkpoint, p.focus.sentence), *decoding.tokens.ids[:step]]
    st.markdown(f"##### {as_plain(p.checkpoint.tokenizer.decode(before))} ____")
    revealed = step in guesses
    st.markdown(p.text["guess_reveal" if revealed else "guess_question"].format(step=step + 1))
    chosen = decoding.steps[step].chosen.id
    with st.container(horizontal=True, key="guess options"):
        for place, option in enumerate(guess_options(decoding.steps[step])):
            mark = {True: ":material/check: ", False: ":material/close: "}.get(
                option.id == chosen if revealed and option.id in (chosen, guesses.get(step)) else None, ""
            )
            st.button(
                mark + as_plain(option.display),
                key=f"guess {place}",
                type="primary" if revealed and option.id == chosen else "secondary",
                disabled=revealed,
                on_click=_pick,
                args=(step, option.id),
                width=180,
            )
    way_to(_ANSWER)
    if not revealed:
        return
    with st.container(key=_ANSWER):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                p.text["guess_next"], icon=":material/arrow_forward:", key="guess next", on_click=_next, type="primary"
            )
            generation.describe(p, decoding, settings, step, n_given=n_given)
        with st.container(horizontal=True):
            with st.container():
                generation.candidates(p, decoding, step)
            with st.container():
                generation.attention(p, decoding, step)


def _score(p: Page, decoding: Decoding, guesses: dict[int, int]) -> None:
    right = sum(decoding.tokens.ids[step] == id for step, id in guesses.items())
    if guesses:
        share = three_digits(100 * right / len(guesses))
        st.markdown(p.text["guess_score"].format(right=right, count=len(guesses), share=share))
    else:
        st.markdown(p.text["guess_start"])


def _pick(step: int, id: int) -> None:
    st.session_state[_STATE]["guesses"].setdefault(step, id)
    opened(_ANSWER)


def _next() -> None:
    st.session_state[_STATE]["step"] += 1


def _begin_again() -> None:
    del st.session_state[_STATE]
