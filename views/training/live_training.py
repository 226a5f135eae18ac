"""“Train one now”: a tiny model learns letters while its loss and attention are drawn."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import streamlit as st

from charts.canvas.attention_maps import attention_map
from charts.figures.training_curves import live_loss, live_shares
from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import three_digits
from transformer.errors import InputError
from transformer.files.once import once
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence
from transformer.toy.learner import ToyLearner
from transformer.toy.tasks import LONGEST, SHORTEST, TASKS, letter_ids
from transformer.toy.toy_training import BATCH_SIZE, EXAMPLE, N_HELD_OUT, ToyState, train_toy
from ui.compute.jobs import Job, Report, Status, make_mine, this_session
from ui.compute.store import store
from ui.page.page import Page, guard
from ui.server.settings import settings as server_settings
from ui.server.settings import without_folders
from ui.shell import choice
from ui.shell.fragments import fragment
from ui.show.drawings import show_map
from ui.show.figures import show_code, show_figure
from ui.words.texts import as_plain, problem_text

PATIENCE = 20.0  # seconds without a request until it stops; browsers rarely refresh background tabs
_LOG = logging.getLogger(__name__)


RUN = "live training"  # key of the session state, which survives a change of page
REDRAW = 0.7  # seconds
_POSITIONS = ("sinusoidal", "learned", "none")
_HEADS = (1, 2, 4)
_RATES = (0.0002, 0.001, 0.005, 0.02, 0.1)


@dataclass(frozen=True)
class Settings:
    """Settings that a run was started with; the controls may have changed since."""

    task: str
    positions: str
    n_heads: int
    learning_rate: float
    seed: int
    example: str

    def train(self) -> Iterator[ToyState]:
        """Train a tiny model with these settings."""
        return train_toy(
            self.task,
            seed=self.seed,
            n_heads=self.n_heads,
            learning_rate=self.learning_rate,
            positions=self.positions,
            example=self.example,
        )

    def snippet(self) -> str:
        """Return the Python code for the same training."""
        return (
            "from transformer.toy.toy_training import train_toy\n\n"
            f"for state in train_toy({self.task!r}, positions={self.positions!r}, n_heads={self.n_heads}, "
            f"learning_rate={self.learning_rate},\n"
            f"                       seed={self.seed}, example={self.example!r}):\n"
            "    print(state.step, state.score.loss, state.score.accuracy, state.written)\n"
            "print(state.attention.weights[0].round(2))\n"
            f"print(state.learner.answer({self.example!r}).text)\n"
        )


@dataclass(frozen=True)
class Live:
    """One training in the background.

    ``states`` are its results so far; ``number`` counts the trainings that this session has started, including this
    one.
    """

    settings: Settings
    number: int
    states: list[ToyState] = field(default_factory=list)

    @once
    def job(self) -> Job[None]:
        """The background job of the training."""
        return Job(self._train, patience=PATIENCE)

    def _train(self, report: Report) -> None:
        try:
            for state in self.settings.train():
                self.states.append(state)
                report(state.step, state.steps)
        except Exception:  # any error becomes a message on the page
            _LOG.warning("a training in the background failed", exc_info=True)
            raise


def how_it_stands(p: Page, live: Live, *, status: Status, states: Sequence[ToyState]) -> None:
    """Show the progress of a training run, or how it ended."""
    settings, job = live.settings, live.job
    if status == "waiting":
        waiting = p.md("now_waiting", number=job.before + 1, at_once=server_settings().jobs)
        st.info(waiting, icon=":material/hourglass_empty:")
    elif status == "failed":
        problem = without_folders(str(job.problem) or type(job.problem).__name__)
        st.warning(p.md("now_failed", problem=problem), icon=":material/error:")
    elif not states:
        p.say("now_first" if status == "running" else "now_none", small=True)
    else:
        last = states[-1]
        p.say(
            f"now_{status}", task=p.words(f"now_task.{settings.task}"), parameters=last.learner.model.n_parameters,
            step=last.step, steps=last.steps, seconds=round(job.seconds), words=N_HELD_OUT, patience=round(PATIENCE),
            right=round(last.score.accuracy * N_HELD_OUT),
        )  # fmt: skip


def draw(p: Page, settings: Settings, states: Sequence[ToyState], *, slider: str = "") -> None:
    """Draw the map on the left, numbers and curves on the right, for the last state or the slider's.

    ``slider`` is the key of the slider that goes back to an earlier state.
    """
    with st.grid(2, min_column_width=430):
        left, right = st.container(), st.container()
    with right:
        numbers, at = st.container(), len(states) - 1
        if slider and at:
            steps = [state.step for state in states]
            at = steps.index(st.select_slider(p.text["now_back"], steps, value=steps[-1], key=slider))
        _curves(p, states, at)
    state = states[at]
    with numbers:
        _numbers(p, state)
    with left:
        answer = state.learner.task.answer(settings.example)
        written = _marked(state.written, answer) or p.text["now_nothing"]
        st.markdown(f"#### {as_plain(settings.example)} → {written}")
        _maps(state.attention, state.predicted, key="toy map")
        p.say(f"now_{'bag' if settings.positions == 'none' else 'see'}_{settings.task}", small=True)


def _curves(p: Page, states: Sequence[ToyState], at: int) -> None:
    """Draw the loss above the shares, over the same steps."""
    steps = [state.step for state in states]
    over = {"steps": steps, "last_step": states[at].steps, "at": at}
    shares = {
        p.text["now_accuracy"]: [state.score.accuracy for state in states],
        p.text["now_target"]: [max(state.score.on_target) for state in states],
    }
    loss = live_loss([state.score.loss for state in states], **over)
    show_figure(loss, name="toy-loss", caption=p.md("now_curve_loss"))
    show_figure(live_shares(shares, **over), name="toy-shares", caption=p.md("now_curves", words=N_HELD_OUT))


def _numbers(p: Page, state: ToyState) -> None:
    with st.container(horizontal=True, gap="medium"):
        st.metric(p.text["now_step"], whole(state.step), width="content")
        st.metric(p.text["now_loss"], three_digits(state.score.loss), width="content")
        st.metric(p.text["now_accuracy"], percent(state.score.accuracy), width="content")
        st.metric(p.text["now_target"], percent(max(state.score.on_target)), width="content")


def _maps(attention: AttentionView, predicted: TokenSequence, *, key: str) -> None:
    """Draw one map per head: rows are the letters being written, columns the letters of the word."""
    alone = attention.n_heads == 1
    with st.grid(1 if alone else 2, min_column_width=280):
        for head in range(attention.n_heads):
            drawn = attention_map(attention, head=head, shifted_labels=predicted.labels, height=400 if alone else 300)
            show_map(drawn, key=f"{key} {head} of {attention.n_heads}")


def _marked(written: str, right: str) -> str:
    """Return spaced letters, with the wrong ones struck out in red."""
    return "\u2002".join(
        letter if place < len(right) and letter == right[place] else f":red[~~{letter}~~]"
        for place, letter in enumerate(written)
    )


def try_own(p: Page, learner: ToyLearner) -> None:
    """Draw a box for the reader's word, the model's output for it, and its attention."""
    st.subheader(p.text["now_own"], anchor=False)
    word = st.text_input(p.text["now_own_word"], key="toy own", width=320, placeholder=p.text["now_own_placeholder"])
    word = word.strip().lower()
    if not word:
        return
    answer = learner.answer(word)  # a word with other characters raises an error that the page shows
    st.markdown(f"### {as_plain(word)} → {_marked(answer.text, answer.right) or p.text['now_nothing']}")
    if answer.text == answer.right and answer.finished:
        p.say("now_own_right")
    else:
        missing = max(0, len(answer.right) - len(answer.text))
        said = [p.md("now_own_wrong", right=answer.right, wrong=len(answer.wrong), missing=missing)]
        st.markdown(" ".join(said if answer.finished else [*said, p.md("now_own_endless")]))
    if not SHORTEST <= len(word) <= LONGEST:
        p.say("now_own_length", small=True, count=len(word), shortest=SHORTEST, longest=LONGEST)
    if not learner.task.repeats and len(set(word)) < len(word):
        p.say("now_own_repeats", small=True)
    p.say("now_own_map", small=True)
    with st.container(width=620 if answer.attention.n_heads == 1 else "stretch"):
        _maps(answer.attention, answer.predicted, key="toy own map")


def now(p: Page) -> None:
    """Draw the section: settings, start and stop buttons, and the running training."""
    live: Live | None = st.session_state.get(RUN)
    going = live is not None and not live.job.look(this_session())
    settings = _controls(p, going=going)
    if live is None:
        p.say("now_begin", shortest=SHORTEST, longest=LONGEST, batch=BATCH_SIZE, at_once=server_settings().jobs)
        if not _problem(settings.example):
            draw(p, settings, (_untrained(settings),))
    else:
        fragment(_watch, run_every=REDRAW if going else None)(p, live, going=going)
    show_code("live training", (live.settings if live else settings).snippet, train_toy, ToyLearner)


def _controls(p: Page, *, going: bool) -> Settings:
    text, keep = p.text, {"disabled": going}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        task = p.option("now_task", list(TASKS), key="toy task", default="reverse", **keep)
        positions = p.option("now_positions", _POSITIONS, key="toy positions", **keep)
        word = choice.text(text["now_word"], EXAMPLE, key="toy word", width=170, help=text["now_word_help"], **keep)
        with st.popover(text["now_more"], icon=":material/tune:", disabled=going):
            n_heads = choice.buttons(text["now_heads"], _HEADS, 1, key="toy heads", **keep)
            rate = choice.select_slider(text["now_rate"], _RATES, 0.005, key="toy rate", **keep)
            seed = choice.number(text["now_seed"], 0, 9999, 0, key="toy seed", help=text["now_seed_help"], **keep)
        settings = Settings(task, positions, n_heads, rate, int(seed), word.strip().lower())
        problem = _problem(settings.example)
        st.button(
            text["now_start"],
            icon=":material/play_arrow:",
            type="primary",
            key="toy start",
            disabled=going or bool(problem),
            on_click=_start,
            args=(settings,),
        )
        st.button(text["now_stop"], icon=":material/stop:", key="toy stop", disabled=not going, on_click=_stop)
    if problem:
        st.warning(as_plain(problem), icon=":material/edit:")
    return settings


def _problem(word: str) -> str:
    """Return what is wrong with a word, "" if nothing is."""
    try:
        letter_ids(word)
    except InputError as error:
        return problem_text(error)
    return ""


def _start(settings: Settings) -> None:
    _stop()
    before: Live | None = st.session_state.get(RUN)
    live = st.session_state[RUN] = Live(settings, number=before.number + 1 if before else 1)
    make_mine(live.job)
    live.job.start(this_session())


def _untrained(settings: Settings) -> ToyState:
    """Return the model before its first step. Drawing it also makes the browser load its libraries."""
    return store.get(settings, "untrained", lambda: next(settings.train()))


def _stop() -> None:
    if (live := st.session_state.get(RUN)) is not None:
        live.job.leave(this_session(), at_once=True)


def _watch(p: Page, live: Live, *, going: bool) -> None:
    """Redraw every ``REDRAW`` seconds during the training; the requests also keep it running."""
    with guard():
        over = live.job.look(this_session())
        if going and over:
            st.rerun()  # the whole page, because its buttons change; the fragment stops
        states = (*live.states,)  # a copy, because its thread continues
        how_it_stands(p, live, status=live.job.status, states=states)
        if not states:
            return
        draw(p, live.settings, states, slider=f"toy step {live.number}" if over else "")
        if over:
            try_own(p, states[-1].learner)
