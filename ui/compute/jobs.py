"""Long computations of all sessions, the live trainings among them: few at a time and in fair shares, the others in
line; each shows how far it is and can be cancelled, none is done twice.

``jobs.result`` waits in the script of the page: Streamlit leaves what was on the screen where it is until the
script goes on, and whatever the person does meanwhile ends the waiting. The work itself is done in a thread of its own,
which several sessions may look at; it ends at its next step when nobody has looked for a moment: it was cancelled, the
page was left, the browser was closed. A page that shows a computation while it goes on (a training) starts a ``Job`` of
its own and looks at it again and again.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Generic, Literal, TypeVar
from weakref import WeakValueDictionary, ref

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer.probes import interruptible
from ui.compute.store import Key, Name, Store, kind_of, store
from ui.compute.turns import turns
from ui.server.limits import limits
from ui.words.texts import common

Result = TypeVar("Result")
Report = Callable[[int, int], None]
Status = Literal["waiting", "running", "finished", "stopped", "left", "failed"]
TRAINING = "training"  # a kind of job
PATIENCE = 4.0  # seconds for which a job goes on although nobody looks at it
LOOK_AGAIN = 0.25  # seconds
SHARE = 1.0  # seconds, after which a job lets another one of those in line go on
_GRACE = 1.0  # seconds for which it goes on after somebody left: most of them come back in the same breath
_SHORT = 0.4  # seconds before it is worth saying that something is being computed
_WHO, _MINE, _STOPPED = (f"long jobs: {name}" for name in ("who", "mine", "stopped"))


@dataclass(eq=False)
class _Place:
    who: object
    visitor: Hashable
    kind: str
    since: float = 0.0  # a moment of time.monotonic(): when it was taken


class Places:
    """Room for so many at once; the others wait in line.

    Who is inside gives its place up after its ``share`` of seconds where others wait, and stands in line again. First
    goes who has fewest inside, then who has had no share for longest, then who came first: so each visitor (each
    session of the app) gets as much as any other, however many computations it has begun, and who is new waits for one
    share at most.

    Without a ``count`` the limits of the server hold, read when somebody asks for a place: of a ``TRAINING`` fewer may
    be inside, and who waits for one lets others pass.
    """

    def __init__(self, count: int | None = None, *, share: float = SHARE) -> None:
        self._count, self._share = count, share
        self._inside: dict[object, _Place] = {}
        self._line: list[_Place] = []
        self._served: dict[Hashable, float] = {}  # when the last share of each visitor ended
        self._changed = threading.Condition()

    def enter(self, who: object, *, waits: Callable[[], bool], kind: str = "", visitor: Hashable | None = None) -> bool:
        """Wait for a place. ``False`` where ``waits()`` has become false before there was one."""
        place = _Place(who, who if visitor is None else visitor, kind)
        with self._changed:
            self._line.append(place)
            try:
                while self._next() is not place:
                    if not waits():
                        return False
                    self._changed.wait(LOOK_AGAIN)
                place.since = time.monotonic()
                self._inside[who] = place
                return True
            finally:
                self._line.remove(place)
                self._changed.notify_all()

    def take_turns(self, who: object, *, waits: Callable[[], bool]) -> bool:
        """For one who is inside: let another one in where that is due, and wait for a place again, like ``enter``."""
        with self._changed:
            place = self._inside[who]
            if not self._line or time.monotonic() < place.since + self._share:
                return True
            self.leave(who)
            return self.enter(who, waits=waits, kind=place.kind, visitor=place.visitor)

    def leave(self, who: object) -> None:
        """Give the place back, if any."""
        with self._changed:
            if (place := self._inside.pop(who, None)) is not None:
                here = {other.visitor for other in (*self._inside.values(), *self._line)}
                self._served = {other: when for other, when in self._served.items() if other in here}
                self._served[place.visitor] = time.monotonic()
                self._changed.notify_all()

    def number(self, who: object) -> int:
        """1 for the one who is next; 0 for one who does not wait."""
        with self._changed:
            return next((at for at, place in enumerate(self._in_order(), start=1) if place.who is who), 0)

    def _in_order(self) -> list[_Place]:
        inside = Counter(place.visitor for place in self._inside.values())
        return sorted(self._line, key=lambda place: (inside[place.visitor], self._served.get(place.visitor, 0.0)))

    def _next(self) -> _Place | None:
        """Who may come in now."""
        if len(self._inside) >= self._room():
            return None
        kinds = Counter(place.kind for place in self._inside.values())
        return next((place for place in self._in_order() if kinds[place.kind] < self._room(place.kind)), None)

    def _room(self, kind: str = "") -> int:
        if self._count is not None:
            return self._count
        return limits().trainings if kind == TRAINING else limits().jobs


PLACES = Places()  # of all sessions; the cores are needed for everybody's short work as well


class JobStopped(BaseException):
    """Raised inside of work for which no session waits any more. No ``Exception``: no analysis may swallow it."""


class Job(Generic[Result]):
    """One computation in the background: ``work(report)`` is called in a thread when there is a place for it.

    ``report(done, total)`` says how far it is, lets others have their share, and ends the work (by ``JobStopped``)
    where nobody wants it any more; so does every forward pass of a model. ``passes``: how many of those the work takes,
    about, where it does not report. ``visitor``: for whom it is done. ``patience``: see ``PATIENCE``.
    """

    def __init__(
        self,
        work: Callable[[Report], Result],
        *,
        passes: int = 0,
        kind: str = "",
        visitor: Hashable | None = None,
        places: Places | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._work, self._passes, self._n_passed = work, passes, 0
        self._kind, self._visitor = kind, visitor
        self._places = PLACES if places is None else places
        self._patience = patience
        self._seen: dict[Hashable, float] = {}  # until when each of those who look counts as looking
        self._seen_lock = threading.Lock()
        self._given_up = False  # by the last one who looked
        self._done = threading.Event()
        self.progress: tuple[int, int] | None = None
        self._started = self._ended = 0.0  # moments of time.monotonic(), 0 before
        self.result: Result | None = None
        self.problem: Exception | None = None
        self.stopped = False
        self._thread = threading.Thread(target=self._run, name="glassformer long job", daemon=True)

    def start(self, who: Hashable) -> None:
        """For one who looks from now on."""
        self.look(who)
        self._thread.start()

    def look(self, who: Hashable) -> bool:
        """Keep it going; whether it is over. Only a job that is still wanted can be joined (``wanted``)."""
        with self._seen_lock:
            self._seen[who] = time.monotonic() + self._patience
        return self.over

    def leave(self, who: Hashable, *, at_once: bool = False) -> None:
        """``who`` looks no longer; without anybody else the work ends, at once and for good or after a moment."""
        with self._seen_lock:
            if at_once:
                self._seen.pop(who, None)
                self._given_up = self._given_up or not self._seen
            elif who in self._seen:
                self._seen[who] = min(self._seen[who], time.monotonic() + _GRACE)

    @property
    def wanted(self) -> bool:
        now = time.monotonic()
        with self._seen_lock:
            return not self._given_up and any(until > now for until in self._seen.values())

    @property
    def over(self) -> bool:
        return self._done.is_set()

    @property
    def status(self) -> Status:
        """Of those that are over without a result, some were "stopped", and others "left": nobody looked any more."""
        if not self.over:
            return "running" if self._started else "waiting"
        if self.problem is not None:
            return "failed"
        return ("stopped" if self._given_up else "left") if self.stopped else "finished"

    @property
    def before(self) -> int:
        """How many are in line before it."""
        return max(0, self._places.number(self) - 1)

    @property
    def seconds(self) -> float:
        """How long it has gone on, or went on."""
        return (self._ended or time.monotonic()) - self._started if self._started else 0.0

    @property
    def share(self) -> float:
        """How much of it is done, about: 0…1."""
        done, total = self.progress or (self._n_passed, self._passes)
        return min(1.0, done / total) if total else 0.0

    def wait(self, timeout: float) -> bool:
        """Until it is over, or for so many seconds; whether it is over."""
        return self._done.wait(timeout)

    def _report(self, done: int, total: int) -> None:
        self.progress = (done, total)
        self._go_on()
        # Not before every pass: what is half done in between may be locked for others who need it.
        if not self._places.take_turns(self, waits=lambda: self.wanted):
            raise JobStopped

    def _before_pass(self) -> None:
        self._go_on()
        self._n_passed += 1

    def _go_on(self) -> None:
        if not self.wanted:
            raise JobStopped

    def _run(self) -> None:
        try:
            if not self._places.enter(self, waits=lambda: self.wanted, kind=self._kind, visitor=self._visitor):
                raise JobStopped
            self._started = time.monotonic()
            with interruptible(self._before_pass):
                self.result = self._work(self._report)
        except JobStopped:
            self.stopped = True
        except Exception as problem:  # whoever waits raises it on the page, which makes a sentence of it
            self.problem = problem
        finally:
            self._ended = time.monotonic()
            del self._work  # with all that it computes with
            self._places.leave(self)
            self._done.set()


# ---- as a page asks -------------------------------------------------------------------------------------------------


class LongJobs:
    """What is being computed at length, for all sessions. The results lie in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        # Weakly: a job lives as long as its thread, or somebody who waits for it.
        self._running: WeakValueDictionary[Key, Job] = WeakValueDictionary()

    def result(
        self,
        of: Hashable,
        name: Name,
        work: Callable[[Report], Result],
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
        if st.session_state.get(_STOPPED) == hash(key):
            st.caption(stopped or common("long.stopped"))
            st.button(common("long.go_on"), icon=":material/play_arrow:", key=f"{kind} on", on_click=_go_on)
            return None
        who, room = this_session(), st.empty()
        while True:
            job = self._join(key, work, passes=passes, who=who)
            make_mine(job)
            try:
                with turns.aside():  # the server has time for others
                    if not job.wait(_SHORT):
                        cancel = partial(_cancel, hash(key), ref(job), who, on_cancel)
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

    def _join(self, key: Key, work: Callable[[Report], Result], *, passes: int, who: Hashable) -> Job[Result]:
        with self._lock:
            job = self._running.get(key)
            if job is not None and not job.over and job.wanted:
                job.look(who)
                return job

            def and_keep(report: Report) -> Result:
                found = work(report)
                self._store.keep(*key, found)
                return found

            job = self._running[key] = Job(and_keep, passes=passes, visitor=who)
            job.start(who)
            return job


jobs = LongJobs(store)


def make_mine(job: Job) -> None:
    """One long job for each session: ``job`` is the one of this session now, and the one before it is left."""
    before = st.session_state.get(_MINE, _no_job)()
    if before is not None and before is not job:
        before.leave(this_session(), at_once=True)
    st.session_state[_MINE] = ref(job)


def _no_job() -> None:
    """Stand for the job of a session that has had none."""


def this_session() -> Hashable:
    """Who looks: one object for each browser session."""
    return st.session_state.setdefault(_WHO, object())


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


def _words(job: Job, doing: str, saying: Callable[[int, int], str] | None) -> str:
    if job.status == "waiting":
        return common("long.waiting", before=job.before, at_once=limits().jobs)
    if saying is not None and job.progress is not None:
        return saying(*job.progress)
    return f"{doing} {common('long.seconds', seconds=int(job.seconds))}"


def _cancel(what: int, of: "ref[Job]", who: Hashable, instead: Callable[[], None] | None) -> None:
    if (job := of()) is not None:
        job.leave(who, at_once=True)
    if instead is None:
        st.session_state[_STOPPED] = what
    else:
        instead()


def _go_on() -> None:
    st.session_state.pop(_STOPPED, None)
