"""Predict, then reveal: a student paints where a token attends before the head's row is shown.

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
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.guidance.way import lead_to, mark_opened
from ui.shell.page import Page
from ui.show.drawings import show_map
from ui.show.figures import show_figure
from ui.words.texts import as_plain
from views.attention.attention_controls import GUESS, guess_switch
from views.attention.attention_view_model import AttentionViewModel
from views.attention.facts import say_row

_STATE, _ANSWER = "attention: guesses", "attention answer"
MAP_HEIGHT = 340  # pixels; the map and the answer above it fit on the first screen
_SHOWN = 16  # bars


def is_on() -> bool:
    """Return whether the guess mode is on."""
    return choice.is_on(GUESS)


def guess(p: Page, shown: AttentionViewModel) -> None:
    """Draw the question or, if this row has been guessed, how close the guess was."""
    guesses: dict[tuple, tuple[int, ...]] = st.session_state.setdefault(_STATE, {})
    row = shown.row
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        guess_switch(p)
        _mean(p, shown, guesses)
    name = as_plain(shown.row_label)
    padding = shown.view.query[row].is_padding
    if padding or shown.view.allowed[row].sum() < 2:
        st.markdown(p.text["guess_trivial"].format(row=name))
        _next_button(p, shown)
        _map_so_far(p, shown, guesses)
    elif (key := _key(p, shown, row)) in guesses:
        with st.container(key=_ANSWER):
            _revealed(
                p, shown, score_guess(shown.path.weights[row], guesses[key], allowed=shown.view.allowed[row]), guesses
            )
    else:
        _ask(p, shown, key, name)
        _map_so_far(p, shown, guesses)
    lead_to(_ANSWER)


def _key(p: Page, shown: AttentionViewModel, row: int) -> tuple:
    focus = p.focus
    answer = (focus.target, p.trace.text)
    return (p.checkpoint.fingerprint, p.sentence, *answer, focus.pads, shown.view.name, focus.head, row)


def _ask(p: Page, shown: AttentionViewModel, key: tuple, name: str) -> None:
    row = shown.row
    allowed = [int(place) for place in np.flatnonzero(shown.view.allowed[row])]
    question = p.text["guess_question_predicted" if shown.names_predictions else "guess_question"].format(
        row=name,
        place=attention_name(shown.view),
        layer=shown.view.layer,
        head=p.focus.head,
    )
    st.markdown(f"##### {question}")
    painted = st.pills(
        question,
        allowed,
        selection_mode="multi",
        label_visibility="collapsed",
        format_func=[as_plain(label) for label in shown.view.key.labels].__getitem__,
        key=f"paint {key}",
    )
    if len(allowed) < len(shown.view.key):
        st.caption(p.text["guess_masked"].format(count=len(shown.view.key) - len(allowed)))
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
    mark_opened(_ANSWER)


def _revealed(p: Page, shown: AttentionViewModel, score: GuessScore, guesses: dict) -> None:
    row = shown.row
    weights = shown.path.weights[row]
    painted = np.flatnonzero(score.guess)
    st.markdown(
        p.text["guess_result"].format(
            overlap=three_digits(score.overlap),
            evenly=three_digits(score.evenly),
            caught=three_digits(score.caught),
            painted=len(painted),
            keys=int(shown.view.allowed[row].sum()),
        )
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        _next_button(p, shown)
        say_row(p, shown)
    most = np.argsort(-np.maximum(score.guess, weights), kind="stable")
    bars = sorted(int(place) for place in most[:_SHOWN] if shown.view.allowed[row, place])
    table = pd.DataFrame(
        {
            "piece": [shown.view.key.labels[place] for place in bars],
            "before": score.guess[bars],
            "after": weights[bars],
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
            _map_so_far(p, shown, guesses)


def _next_button(p: Page, shown: AttentionViewModel) -> None:
    st.button(
        p.text["guess_next"],
        icon=":material/arrow_forward:",
        key="attention guess next",
        on_click=shared_focus.change,
        kwargs={"token": (p.focus.token + 1) % len(shown.view.query)},
    )


def _mean(p: Page, shown: AttentionViewModel, guesses: dict) -> None:
    """Return the mean score over all guessed rows of this map."""
    scores = [
        score_guess(shown.path.weights[row], guesses[key], allowed=shown.view.allowed[row])
        for row in range(len(shown.view.query))
        if (key := _key(p, shown, row)) in guesses
    ]
    if len(scores) > 1:
        mean, evenly = (np.mean([getattr(score, name) for score in scores]) for name in ("overlap", "evenly"))
        st.markdown(
            p.text["guess_mean"].format(
                count=len(scores), overlap=three_digits(float(mean)), evenly=three_digits(float(evenly))
            ),
            width="content",
        )


def _map_so_far(p: Page, shown: AttentionViewModel, guesses: dict) -> None:
    """Hatch all rows of the map not guessed yet; their weights are not sent to the browser."""
    known = np.array([_key(p, shown, row) in guesses for row in range(len(shown.view.query))])
    if not known.any():
        return
    show_map(
        value_map(
            np.where(known[:, None], shown.path.weights, 0.0),
            row_labels=shown.row_labels,
            column_labels=shown.view.key.labels,
            row_title=row_title(shifted=shown.names_predictions),
            column_title=KEY_TITLE,
            scale="sequential",
            limit=1.0,
            allowed=shown.view.allowed & known[:, None],
            masked_text=p.text["guess_hidden"],
            title=title_of(shown.view, head=p.focus.head),
            value_name=_("attention weight"),
            phrase=("", LOOKS_AT),
            chosen_row=shown.row,
            height=MAP_HEIGHT,
        ),
        key="attention guessed rows",
    )
