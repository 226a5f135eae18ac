"""Predict, then reveal: a student paints where the focused token will look before the head's row is shown.

While it is on, a row stays hidden until it is guessed, and so do the sentence and the numbers about it.
"""

import numpy as np
import pandas as pd
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, LOOKS_AT, attention_name, row_title, title_of
from charts.canvas.value_map import value_map
from charts.figures.edit_effects import candidates_before_and_after
from charts.toolkit.style import three_digits
from charts.toolkit.words import _
from transformer.attention_maps.attention_guess import GuessScore, score_guess
from transformer.runs.attention_view import AttentionView
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.guidance.way import opened, way_to
from ui.shell.page import Page
from ui.show.drawings import show_map
from ui.show.figures import show_figure
from ui.words.texts import as_plain
from views.attention.facts import read_aloud
from views.attention.rows import labels_of, named_after_prediction

SWITCH, _STATE, _ANSWER = "attention_guess", "attention: guesses", "attention answer"
MAP_HEIGHT = 340  # pixels: with the answer above it, it ends on the first screen
_SHOWN = 16  # bars


def switch(p: Page) -> bool:
    """The toggle; in the address, so that a teacher's link begins with the question."""
    return choice.toggle(p.text["guess"], key=SWITCH, help=p.text["guess_help"])


def is_on() -> bool:
    return choice.is_on(SWITCH)


def guess(p: Page, view: AttentionView) -> None:
    """The question, or, once this row has been guessed, how good the guess was."""
    guesses: dict[tuple, tuple[int, ...]] = st.session_state.setdefault(_STATE, {})
    row, head = p.focus.token, p.focus.head
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        switch(p)
        _mean(p, view, guesses)
    predicted = named_after_prediction(view)
    name = as_plain(labels_of(p.trace, view, predicted=predicted)[row])
    padding = view.query[row].is_padding
    if padding or view.allowed[row].sum() < 2:
        st.markdown(p.text["guess_trivial"].format(row=name))
        _next_button(p, view)
        _map_so_far(p, view, guesses)
    elif (key := _key(p, view, row)) in guesses:
        with st.container(key=_ANSWER):
            _revealed(p, view, score_guess(view.weights[head, row], guesses[key], allowed=view.allowed[row]), guesses)
    else:
        _ask(p, view, key, name)
        _map_so_far(p, view, guesses)
    way_to(_ANSWER)


def _key(p: Page, view: AttentionView, row: int) -> tuple:
    focus = p.focus
    answer = (focus.target, p.trace.text)
    return (p.checkpoint.fingerprint, focus.sentence, *answer, focus.pads, view.name, focus.head, row)


def _ask(p: Page, view: AttentionView, key: tuple, name: str) -> None:
    row = p.focus.token
    allowed = [int(place) for place in np.flatnonzero(view.allowed[row])]
    question = p.text["guess_question_predicted" if named_after_prediction(view) else "guess_question"].format(
        row=name, place=attention_name(view), layer=view.layer, head=p.focus.head
    )
    st.markdown(f"##### {question}")
    painted = st.pills(
        question,
        allowed,
        selection_mode="multi",
        label_visibility="collapsed",
        format_func=lambda place: as_plain(view.key.labels[place]),
        key=f"paint {key}",
    )
    if len(allowed) < len(view.key):
        st.caption(p.text["guess_masked"].format(count=len(view.key) - len(allowed)))
    st.button(
        p.text["guess_reveal"],
        icon=":material/visibility:",
        type="primary",
        key="attention reveal",
        disabled=not painted,
        on_click=_reveal,
        args=(key, tuple(painted)),
    )


def _reveal(key: tuple, painted: tuple[int, ...]) -> None:
    st.session_state[_STATE].setdefault(key, painted)
    opened(_ANSWER)


def _revealed(p: Page, view: AttentionView, score: GuessScore, guesses: dict) -> None:
    row, head = p.focus.token, p.focus.head
    weights = view.weights[head, row]
    painted = np.flatnonzero(score.guess)
    st.markdown(
        p.text["guess_result"].format(
            overlap=three_digits(score.overlap),
            evenly=three_digits(score.evenly),
            caught=three_digits(score.caught),
            painted=len(painted),
            keys=int(view.allowed[row].sum()),
        )
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        _next_button(p, view)
        named = labels_of(p.trace, view, predicted=True)[row] if named_after_prediction(view) else None
        st.markdown(read_aloud(p.text, view, head=head, row=row, predicted=named))
    most = np.argsort(-np.maximum(score.guess, weights), kind="stable")
    shown = sorted(int(place) for place in most[:_SHOWN] if view.allowed[row, place])
    table = pd.DataFrame(
        {
            "piece": [view.key.labels[place] for place in shown],
            "before": score.guess[shown],
            "after": weights[shown],
        }
    )
    names = p.text["guess_yours"], p.text["guess_heads"]
    with st.grid(2, min_column_width=400):
        with st.container():
            show_figure(
                candidates_before_and_after(table, names=names, axis=p.text["guess_axis"], row=KEY_TITLE),
                name="guess-and-attention",
                caption=p.text["guess_formula"],
                alt=p.text["guess_formula"],
            )
        with st.container():
            _map_so_far(p, view, guesses)


def _next_button(p: Page, view: AttentionView) -> None:
    st.button(
        p.text["guess_next"],
        icon=":material/arrow_forward:",
        key="attention guess next",
        on_click=shared_focus.change,
        kwargs={"token": (p.focus.token + 1) % len(view.query)},
    )


def _mean(p: Page, view: AttentionView, guesses: dict) -> None:
    """The mean over all rows of this map that were guessed."""
    scores = [
        score_guess(view.weights[p.focus.head, row], guesses[key], allowed=view.allowed[row])
        for row in range(len(view.query))
        if (key := _key(p, view, row)) in guesses
    ]
    if len(scores) > 1:
        mean, evenly = (np.mean([getattr(score, name) for score in scores]) for name in ("overlap", "evenly"))
        st.markdown(
            p.text["guess_mean"].format(
                count=len(scores), overlap=three_digits(float(mean)), evenly=three_digits(float(evenly))
            ),
            width="content",
        )


def _map_so_far(p: Page, view: AttentionView, guesses: dict) -> None:
    """The map with every row hatched that was not guessed yet: what is hidden is not sent to the browser either."""
    known = np.array([_key(p, view, row) in guesses for row in range(len(view.query))])
    predicted = named_after_prediction(view)
    if not known.any():
        return
    show_map(
        value_map(
            np.where(known[:, None], view.weights[p.focus.head], 0.0),
            row_labels=labels_of(p.trace, view, predicted=predicted),
            column_labels=view.key.labels,
            row_title=row_title(view, shifted=predicted),
            column_title=KEY_TITLE,
            scale="sequential",
            limit=1.0,
            allowed=view.allowed & known[:, None],
            masked_text=p.text["guess_hidden"],
            title=title_of(view, head=p.focus.head),
            value_name=_("attention weight"),
            phrase=("", LOOKS_AT),
            chosen_row=p.focus.token,
            height=MAP_HEIGHT,
        ),
        key="attention guessed rows",
    )
