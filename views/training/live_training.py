"""“Train one now”: a tiny model learns letters while one watches its loss fall and its attention take shape."""

import streamlit as st

from transformer.errors import InputError
from transformer.toy.learner import ToyLearner
from transformer.toy.tasks import LONGEST, SHORTEST, TASKS, letter_ids
from transformer.toy.toy_training import BATCH_SIZE, EXAMPLE, ToyState, train_toy
from ui.compute.jobs import make_mine, this_session
from ui.compute.store import store
from ui.server.limits import limits
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.fragments import fragment
from ui.shell.page import Page, guard
from ui.show.figures import show_snippet, show_source
from ui.words.catalogues import said
from ui.words.texts import PageText, as_plain
from views.training.training_progress import Live, Settings, draw, how_it_stands, try_own

RUN = "live training"  # in the session's state: stays there when the page is left
REDRAW = 0.7  # seconds
_POSITIONS = ("sinusoidal", "learned", "none")
_HEADS = (1, 2, 4)
_RATES = (0.0002, 0.001, 0.005, 0.02, 0.1)


def now(p: Page) -> None:
    """The section: settings, a button that starts, a button that stops, and what is to be seen meanwhile."""
    live: Live | None = st.session_state.get(RUN)
    going = live is not None and not live.job.look(this_session())
    settings = _controls(p.text, going=going)
    if live is None:
        facts = {"shortest": SHORTEST, "longest": LONGEST, "batch": BATCH_SIZE, "at_once": limits().trainings}
        st.markdown(p.text["now_begin"].format(**facts))
        if not _problem(settings.example):
            draw(p.text, settings, (_untrained(settings),))
    else:
        fragment(_watch, run_every=REDRAW if going else None)(p.text, live, going=going)
    show_source(train_toy, ToyLearner)
    show_snippet("live training", (live.settings if live else settings).snippet())


def _controls(text: PageText, *, going: bool) -> Settings:
    keep = {"disabled": going}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        task = chosen_option(
            text, "now", list(TASKS), key="toy task", first="reverse", label=text["now_task"], disabled=going
        )
        positions = chosen_option(text, "now_positions", _POSITIONS, key="toy positions", disabled=going)
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
    """What is wrong with a word, "" if nothing is."""
    try:
        letter_ids(word)
    except InputError as error:
        return said(error)
    return ""


def _start(settings: Settings) -> None:
    _stop()
    before: Live | None = st.session_state.get(RUN)
    live = st.session_state[RUN] = Live(settings, number=before.number + 1 if before else 1)
    make_mine(live.job)
    live.job.start(this_session())


def _untrained(settings: Settings) -> ToyState:
    """The model before its first step. To draw it also makes the browser load what it draws with."""
    return store.get(settings, "untrained", lambda: next(settings.train()))


def _stop() -> None:
    if (live := st.session_state.get(RUN)) is not None:
        live.job.leave(this_session(), at_once=True)


def _watch(text: PageText, live: Live, *, going: bool) -> None:
    """Runs again by itself every ``REDRAW`` seconds while the training goes on; that is what keeps it going."""
    with guard():
        over = live.job.look(this_session())
        if going and over:
            st.rerun()  # the whole page: its buttons change, and this stops running by itself
        states = (*live.states,)  # its thread goes on
        how_it_stands(text, live, status=live.job.status, states=states)
        if not states:
            return
        draw(text, live.settings, states, slider=f"toy step {live.number}" if over else "")
        if over:
            try_own(text, live.settings, states[-1].learner)
