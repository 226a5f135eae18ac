"""What is to be seen of a training that goes on or has gone by: numbers, curves, attention, answers."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from charts.live_curves import live_curves
from charts.style import three_digits
from transformer.toy.learner import ToyLearner
from transformer.toy.tasks import LONGEST, SHORTEST
from transformer.toy.training import N_HELD_OUT, ToyState
from ui.attention_canvas import attention_map
from ui.show import show_figure
from ui.text import PageText, as_plain
from ui.training_runs import AT_ONCE, PATIENCE, Progress


@dataclass(frozen=True)
class Settings:
    """What a run was started with; the controls may have been changed since."""

    task: str
    positions: str
    n_heads: int
    learning_rate: float
    seed: int
    example: str

    def snippet(self) -> str:
        return (
            "from transformer.toy.training import train_toy\n\n"
            f"for state in train_toy({self.task!r}, positions={self.positions!r}, n_heads={self.n_heads}, "
            f"learning_rate={self.learning_rate},\n"
            f"                       seed={self.seed}, example={self.example!r}):\n"
            "    print(state.step, state.score.loss, state.score.accuracy, state.written)\n"
            "print(state.attention.weights[0].round(2))\n"
            f"print(state.learner.answer({self.example!r}).text)\n"
        )


def how_it_stands(text: PageText, settings: Settings, progress: Progress[ToyState]) -> None:
    if progress.status == "waiting":
        st.info(text["now_waiting"].format(number=progress.number, at_once=AT_ONCE), icon=":material/hourglass_empty:")
    elif progress.status == "failed":
        st.warning(text["now_failed"].format(problem=as_plain(progress.problem)), icon=":material/error:")
    elif not progress.states:
        st.caption(text["now_first"])
    else:
        last = progress.states[-1]
        sentence = text[f"now_{progress.status}"].format(
            task=text[f"now_{settings.task}"].lower(),
            parameters=last.learner.model.n_parameters,
            step=last.step,
            steps=last.steps,
            seconds=progress.seconds,
            right=round(last.score.accuracy * N_HELD_OUT),
            words=N_HELD_OUT,
            patience=PATIENCE,
        )
        st.markdown(sentence)


def draw(text: PageText, settings: Settings, states: tuple[ToyState, ...], at: int) -> None:
    """The numbers, the curves and the map of one state."""
    state = states[at]
    best = max(range(settings.n_heads), key=lambda head: state.score.on_target[head])
    right = state.learner.task.answer(settings.example)
    with st.container(horizontal=True):
        st.metric(text["now_step"], f"{state.step:,} / {state.steps:,}", width="content")
        st.metric(text["now_loss"], three_digits(state.score.loss), width="content")
        st.metric(text["now_accuracy"], f"{state.score.accuracy:.0%}", width="content")
        st.metric(text["now_target"], f"{state.score.on_target[best]:.0%}", width="content")
        with st.container(gap="xsmall", width="stretch"):
            st.caption(text["now_writes"].format(word=as_plain(settings.example)))
            st.markdown(f"### {_marked(state.written, right) or text['now_nothing']}")
    with st.grid(2, min_column_width=430):
        with st.container():
            figure = live_curves(
                [each.score.loss for each in states],
                shares={
                    text["now_accuracy"]: [each.score.accuracy for each in states],
                    text["now_target"]: [max(each.score.on_target) for each in states],
                },
                steps=[each.step for each in states],
                last_step=state.steps,
                at=at,
            )
            show_figure(figure, name="toy-curves", caption=text["now_curves"].format(words=N_HELD_OUT))
        with st.container():
            _maps(state)
            st.caption(text[f"now_see_{settings.task}"])


def _maps(state: ToyState) -> None:
    """One map for each head: rows are the letters that are being written, columns the letters of the word."""
    n_heads = state.attention.n_heads
    columns = st.columns(min(2, n_heads))
    for head in range(n_heads):
        with columns[head % len(columns)]:
            attention_map(
                state.attention,
                head=head,
                key=f"toy map {head} of {n_heads}",
                shifted_labels=state.predicted.labels,
                height=440 if n_heads <= 2 else 260,
            )


def _marked(written: str, right: str) -> str:
    """Letters far apart, the wrong ones struck out in red."""
    return "\u2002".join(
        letter if place < len(right) and letter == right[place] else f":red[~~{letter}~~]"
        for place, letter in enumerate(written)
    )


def try_own(text: PageText, settings: Settings, learner: ToyLearner) -> None:
    """A word of the reader's own, what the model writes for it, and where it looks."""
    st.subheader(text["now_own"], anchor=False)
    word = st.text_input(text["now_own_word"], key="toy own", width=320, placeholder=text["now_own_placeholder"])
    word = word.strip().lower()
    if not word:
        return
    answer = learner.answer(word)  # what is no word of letters becomes a sentence on the page
    st.markdown(text["now_own_answer"].format(word=as_plain(word)))
    st.markdown(f"## {_marked(answer.text, answer.right) or text['now_nothing']}")
    missing = len(answer.right) - len(answer.text)
    if answer.text == answer.right and answer.finished:
        st.markdown(text["now_own_right"])
    else:
        st.markdown(
            text["now_own_wrong"].format(right=answer.right, wrong=len(answer.wrong), missing=max(0, missing))
            + ("" if answer.finished else " " + text["now_own_endless"])
        )
    if not SHORTEST <= len(word) <= LONGEST:
        st.caption(text["now_own_length"].format(count=len(word), shortest=SHORTEST, longest=LONGEST))
    if not learner.task.repeats and len(set(word)) < len(word):
        st.caption(text["now_own_repeats"])
    for head in range(answer.attention.n_heads):
        attention_map(
            answer.attention,
            head=head,
            key=f"toy own map {head}",
            shifted_labels=answer.predicted.labels,
            height=440,
        )
