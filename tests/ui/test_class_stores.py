"""Classes in memory and in Redis: atomic changes, expiry, and sixty students on two replicas."""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.app_server import free_port
from ui.classroom import class_state as classes
from ui.classroom import stores
from ui.classroom.class_state import SHOWN, SOLVED, Question
from ui.classroom.stores import RedisStore, Store, StoreError

redis = pytest.importorskip(
    "redis", reason="there is no package redis; install it with: pip install -r requirements-class.txt"
)
SERVER = shutil.which("redis-server")
N_STUDENTS, N_QUESTIONS = 60, 4
Replicas = Callable[..., tuple[Store, Store]]


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a Redis server that stores nothing on disk."""
    if SERVER is None:
        pytest.skip("there is no redis-server on this machine; install Debian's with: apt-get install redis-server")
    port = free_port()
    command = [SERVER, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(command, cwd=tmp_path_factory.mktemp("redis"), stdout=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}"
    try:
        client, deadline = redis.Redis.from_url(url), time.monotonic() + 60
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "redis-server did not start"
                time.sleep(0.05)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=60)


@pytest.fixture(params=["memory", "redis"])
def replicas(request: pytest.FixtureRequest) -> Replicas:
    """Return the stores of two servers that share their classes; in memory, there is only one server."""

    def make(**clock: Callable[[], float]) -> tuple[Store, Store]:
        if request.param == "memory":
            store = Store(**clock)
            return store, store
        url = request.getfixturevalue("redis_url")
        redis.Redis.from_url(url).flushall()
        return RedisStore(url, **clock), RedisStore(url, **clock)

    return make


def test_what_one_replica_changes_the_other_one_reads(replicas: Replicas) -> None:
    one, other = replicas()
    state = classes.new_class(now=time.time())
    assert one.open(state)
    assert not other.open(state), "the code is taken"
    assert other.read(state.code) == state
    changed = one.change(state.code, lambda state: classes.join(state, "ann", now=1))
    assert list(changed.students) == ["ann"]
    time.sleep(stores._RECENT)
    assert other.read(state.code) == changed
    assert one.codes() == other.codes() == [state.code]


def test_nothing_is_left_after_the_end(replicas: Replicas, request: pytest.FixtureRequest) -> None:
    one, other = replicas()
    state = classes.join(classes.new_class(now=time.time()), "ann", now=1)
    one.open(state)
    one.end(state.code)
    assert other.read(state.code) is None
    assert other.change(state.code, lambda state: classes.join(state, "bob", now=2)) is None, (
        "no late student revives it"
    )
    assert one.codes() == []
    if isinstance(one, RedisStore):
        assert not redis.Redis.from_url(request.getfixturevalue("redis_url")).keys()


def test_an_abandoned_class_expires_by_itself(replicas: Replicas, request: pytest.FixtureRequest) -> None:
    now = [time.time()]
    one, _ = replicas(clock=lambda: now[0])
    state = classes.new_class(now=now[0])
    one.open(state)
    one.change(state.code, lambda state: classes.join(state, "ann", now=now[0]))
    if isinstance(one, RedisStore):
        left = redis.Redis.from_url(request.getfixturevalue("redis_url")).ttl(stores._PREFIX + state.code)
        assert 0 < left <= classes.LIFETIME + 2, "Redis deletes it, even if the replicas are gone"
    now[0] += classes.LIFETIME
    assert one.read(state.code) is None


def test_there_are_only_so_many_classes(replicas: Replicas) -> None:
    store, _ = replicas()
    opened = [store.open(classes.new_class(now=time.time())) for _ in range(stores.MOST_CLASSES + 1)]
    assert opened == [True] * stores.MOST_CLASSES + [False]


def test_without_redis_the_error_names_no_address_and_only_the_first_page_waits(monkeypatch) -> None:
    store = RedisStore(f"redis://:password@127.0.0.1:{free_port()}")
    for act in (store.codes, lambda: store.read("BCDFGH"), lambda: store.end("BCDFGH")):
        with pytest.raises(StoreError) as error:
            act()
        monkeypatch.setattr(store._redis, "get", lambda *_: pytest.fail("it waits again"))
        assert "password" not in f"{error.value!r} {error.value.__cause__!r}"


def test_sixty_students_join_answer_drop_off_and_come_back(replicas: Replicas) -> None:
    """Half of them at each replica; every third phone sleeps and wakes at the other replica."""
    both = replicas()
    desk, code = both[0], classes.new_class(now=time.time()).code
    desk.open(classes.Class(code, expires=time.time() + 600))
    asked = [threading.Event() for _ in range(N_QUESTIONS)]
    answered = threading.Barrier(N_STUDENTS + 1, timeout=60)
    failures: list[BaseException] = []
    waits: list[float] = []

    def student(number: int) -> None:
        who, chance = classes.student_id(code, f"browser {number}"), random.Random(number)
        store = both[number % 2]
        try:
            _change(store, lambda state: classes.join(state, who, now=time.time()))
            for index, question in enumerate(asked):
                assert question.wait(60)
                if number % 3 == 0 and index == 2:  # asleep during a question; awake at the other replica
                    answered.wait()
                    store = both[(number + 1) % 2]
                    _change(store, lambda state: classes.join(state, who, now=time.time()))
                    continue
                _change(
                    store, lambda state: classes.see(state, who, chance.choice(["heads", "masks"]), now=time.time())
                )
                begun = time.monotonic()
                _change(store, lambda state, index=index: classes.answer(state, who, index, str((number + index) % 3)))
                waits.append(time.monotonic() - begun)
                answered.wait()
        except BaseException as error:
            failures.append(error)
            answered.abort()

    def _change(store: Store, change: classes.Change) -> None:
        assert store.change(code, change) is not None

    students = [threading.Thread(target=student, args=(number,)) for number in range(N_STUDENTS)]
    for one in students:
        one.start()
    for question in asked:
        asks = Question("Which?", ("a", "b", "c"), answer="1")
        desk.change(code, lambda state, asks=asks: classes.ask(classes.stop_asking(state), asks))
        question.set()
        answered.wait()
        desk.change(code, lambda state: classes.advance(classes.advance(state, SHOWN), SOLVED))
    for one in students:
        one.join(60)
    assert not failures
    time.sleep(stores._RECENT)
    state = both[1].read(code)
    assert sorted(student.number for student in state.students.values()) == list(range(N_STUDENTS))
    asleep = N_STUDENTS // 3
    assert [len(question.answers) for question in state.questions] == [60, 60, 60 - asleep, 60]
    for index, question in enumerate(state.questions):
        for number in range(N_STUDENTS):
            given = question.answers.get(classes.student_id(code, f"browser {number}"))
            assert given in ((None, str((number + index) % 3)) if index == 2 else (str((number + index) % 3),))
    assert sorted(waits)[len(waits) // 2] < 1.0, (
        f"half of the answers took longer than {sorted(waits)[len(waits) // 2]} s"
    )


def test_settings_choose_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stores.class_store.cache_clear()
    try:
        monkeypatch.delenv("GLASSFORMER_REDIS", raising=False)
        assert type(stores.class_store()) is Store
        stores.class_store.cache_clear()
        monkeypatch.setenv("GLASSFORMER_REDIS", f"unix://{tmp_path}/redis.sock")
        assert isinstance(stores.class_store(), RedisStore)
    finally:
        stores.class_store.cache_clear()
