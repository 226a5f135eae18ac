"""Predict, then reveal: a student guesses the next word before the model's candidates are shown."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from charts.toolkit.style import percent_digits
from ui.shell.guidance.way import lead_to, mark_opened
from ui.shell.page import Page
from ui.show.figures import show_figure
from ui.words.texts import as_plain
from views.decoding import decoding_figures
from views.decoding.decoding_parts import choose_attention, location_of, show_attention, what_fills, written
from views.decoding.decoding_view_model import DecodingChoices, WrittenText

_STATE, _ANSWER = "guesses", "guess answer"


def guess(p: Page, choices: DecodingChoices) -> None:
    """Draw the text so far and four words to choose from; after the choice, everything else."""
    text = WrittenText(p.run, location_of(p), choices, {(): written(p, choices.writes_by)})
    step, guesses = _state(p, text)
    _score(p, text, guesses)
    if step >= len(text.decoding.tokens):
        st.success(p.text["guess_end"].format(text=as_plain(text.decoding.text)), icon=":material/flag:")
        st.button(p.text["guess_again"], icon=":material/replay:", key="guess again", on_click=_begin_again)
        return
    text = replace(text, choices=replace(choices, step=step))
    revealed = step in guesses
    st.markdown(f"##### {as_plain(text.text_before(step))} ____")
    st.markdown(p.text["guess_reveal" if revealed else "guess_question"].format(step=step + 1))
    _options(text, guesses.get(step))
    lead_to(_ANSWER)
    if revealed:
        with st.container(key=_ANSWER):
            _answer(p, text)


def _state(p: Page, text: WrittenText) -> tuple[int, dict[int, int]]:
    """Return the step that is guessed, and the id that was picked at each step; another text begins anew."""
    owner = (p.focus.checkpoint, p.sentence, text.given, p.run.source_pads, text.decoding.tokens.ids)
    state = st.session_state.get(_STATE)
    if state is None or state["text"] != owner:
        begins = min(text.n_given, len(text.decoding.tokens))
        state = st.session_state[_STATE] = {"text": owner, "step": begins, "guesses": {}}
    return state["step"], state["guesses"]


def _options(text: WrittenText, picked: int | None) -> None:
    """Draw four buttons; after a guess, ``picked`` and the token that the model chose are marked."""
    step, chosen = text.step, text.decoding.steps[text.step].chosen.id
    with st.container(horizontal=True, key="guess options"):
        for place, option in enumerate(text.options):
            marks = picked is not None and option.id in (chosen, picked)
            mark = f":material/{'check' if option.id == chosen else 'close'}: " if marks else ""
            st.button(
                mark + as_plain(option.display),
                key=f"guess {place}",
                type="primary" if marks and option.id == chosen else "secondary",
                disabled=picked is not None,
                on_click=_pick,
                args=(step, option.id),
                width=180,
            )


def _answer(p: Page, text: WrittenText) -> None:
    """Draw the chosen token and how it was chosen, the candidates, and the attention of the model."""
    here = text.here
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            p.text["guess_next"], icon=":material/arrow_forward:", key="guess next", on_click=_next, type="primary"
        )
        values = {name: as_plain(value) for name, value in what_fills(p, here).items()}
        st.markdown(p.text[f"comes_{here.how}"].format(**values))
    rows = [
        {"piece": one.display, "probability": one.probability, "chosen": one.id == here.chosen.id}
        for one in here.candidates
    ]
    with st.container(horizontal=True):
        with st.container():
            show_figure(
                decoding_figures.candidate_bars(pd.DataFrame(rows), rest=here.rest, axis=p.text["candidates_axis"]),
                name="candidates",
                caption=p.text["candidates_caption"],
                alt=p.text["candidates_alt"],
            )
        with st.container():
            figure = st.container()
            text = replace(text, choices=replace(text.choices, **choose_attention(p)))
            with figure:
                caption = p.text[f"attention_{text.kind}_caption"].format(step=text.step + 1, layer=text.layer)
                found = text.attention_at(text.step)
                show_attention(p, text, found, name="attention-of-the-step", caption=caption)


def _score(p: Page, text: WrittenText, guesses: dict[int, int]) -> None:
    if guesses:
        right = text.n_right(guesses)
        share = percent_digits(right / len(guesses))
        st.markdown(p.text["guess_score"].format(right=right, count=len(guesses), share=share))
    else:
        st.markdown(p.text["guess_start"])


def _pick(step: int, id: int) -> None:
    st.session_state[_STATE]["guesses"].setdefault(step, id)
    mark_opened(_ANSWER)


def _next() -> None:
    st.session_state[_STATE]["step"] += 1


def _begin_again() -> None:
    del st.session_state[_STATE]
