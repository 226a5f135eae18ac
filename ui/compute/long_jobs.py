"""Long computations of all sessions: few at a time, the others in line; each can be cancelled, none is done twice.

``jobs.result`` waits in the script of the page: Streamlit leaves what was on the screen where it is until the
script goes on, and whatever the person does meanwhile ends the waiting. The work itself is done in a thread of its own,
which several sessions may look at; it ends at its next step when nobody has looked for a moment: it was cancelled, the
page was left, the browser was closed.
"""

import threading
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Protocol, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.compute.jobs import LOOK_AGAIN, Job
from ui.compute.limits import limits
from ui.compute.store import Key, Name, Store, kind_of, store
from ui.compute.turns import turns
from ui.words.texts import common

Result = TypeVar("Result")
_SHORT = 0.4  # seconds before it is worth saying that something is being computed
_WHO, _MINE, _STOPPED = (f"long jobs: {name}" for name in ("who", "mine", "stopped"))


class LongJobs:
    """What is being computed at length, for all sessions. The results lie in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._running: dict[Key, Job] = {}

    def result(
        self,
        of: Hashable,
        name: Name,
        work: Callable[[Callable[[int, int], None]], Result],
        *,
        doing: str = "",
        passes: int = 0,
        saying: Callable[[int, int], str] | None = None,
        stopped: str = "",
        on_cancel: Callable[[], None] | None = None,
    ) -> Result | None:
        """The result ``name`` of a run (or whatever it belongs to), which ``work(report)`` gives once for all who ask;
        ``None`` where this session has stopped it, which is then said (``stopped``), with a button to go on; or
        ``on_cancel()`` is called instead.

        Draws a bar and a button to cancel while it takes long. What stands on the bar: ``doing``, or
        ``saying(done, total)`` once the work reports. Raises what ``work`` raises. ``work`` runs in a thread of its
        own: it must touch neither Streamlit nor what belongs to a session.
        """
        if (found := self._store.known(of, name)) is not None:
            return found
        key, kind = (of, name), kind_of(name)
        if st.session_state.get(_STOPPED) == key:
            st.caption(stopped or common("long.stopped"))
            st.button(common("long.go_on"), icon=":material/play_arrow:", key=f"{kind} on", on_click=_go_on)
            return None
        who, room = _session(), st.empty()
        while True:
            job = self._join(key, work, passes=passes, who=who)
            take_turn(job)
            try:
                with turns.aside():  # the server has time for others
                    if not job.wait(_SHORT):
                        cancel = partial(_cancel, key, job, who, on_cancel)
                        here = f"{kind} {hash(key)}"  # a page may wait for several, one after the other
                        _watch(here, job, who, room, cancel, lambda job=job: _words(job, doing, saying))
            finally:  # a rerun, a closed browser: both raise out of the drawing, and not as an Exception
                job.leave(who)
            if not job.stopped:  # else it was about to end when this session joined it
                break
        room.empty()
        if job.problem is not None:
            raise job.problem
        return job.result

    def _join(self, key: Key, work: Callable, *, passes: int, who: Hashable) -> Job:
        with self._lock:
            job = self._running.get(key)
            if job is not None and not job.over and job.wanted:
                job.look(who)
                return job

            def and_keep(report: Callable[[int, int], None]) -> Result:
                found = work(report)
                self._store.keep(*key, found)
                with self._lock:
                    self._running.pop(key, None)
                return found

            self._running = {other: run for other, run in self._running.items() if not run.over}
            job = self._running[key] = Job(and_keep, passes=passes)
            job.look(who)
            job.start()
            return job


jobs = LongJobs(store)


class Leavable(Protocol):
    """What a session may have given up for something else: a ``Job``, or a training."""

    def leave(self, who: Hashable, *, at_once: bool = False) -> None: ...


def take_turn(job: Leavable) -> None:
    """One long job for each session: ``job`` is the one of this session now, and the one before it is left."""
    before: Leavable | None = st.session_state.get(_MINE)
    if before is not None and before is not job:
        before.leave(_session(), at_once=True)
    st.session_state[_MINE] = job


def _watch(
    name: str, job: Job, who: Hashable, room: DeltaGenerator, cancel: Callable[[], None], words: Callable[[], str]
) -> None:
    with room.container(key=f"{name} bar", horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0)
        st.button(
            common("long.cancel"), icon=":material/close:", key=f"{name} cancel", on_click=cancel, width="content"
        )
    while not job.look(who):
        bar.progress(job.share, words())
        job.wait(LOOK_AGAIN)


def _session() -> Hashable:
    """Who looks: one object for each browser session."""
    return st.session_state.setdefault(_WHO, object())


def _words(job: Job, doing: str, saying: Callable[[int, int], str] | None) -> str:
    if job.waiting:
        return common("long.waiting", before=job.before, at_once=limits().jobs)
    if saying is not None and job.progress is not None:
        return saying(*job.progress)
    return f"{doing} {common('long.seconds', seconds=int(time.monotonic() - job.started))}"


def _cancel(what: Key, job: Job, who: Hashable, instead: Callable[[], None] | None) -> None:
    job.leave(who, at_once=True)
    if instead is None:
        st.session_state[_STOPPED] = what
    else:
        instead()


def _go_on() -> None:
    st.session_state.pop(_STOPPED, None)
