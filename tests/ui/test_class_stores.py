"""Classes in memory and in Redis: atomic changes, expiry, and sixty students on two replicas."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.app_server import free_port
from ui.classroom import class_state as classes
from ui.classroom import stores
from ui.classroom.class_state import Question
from ui.classroom.stores import RedisStore, Store, StoreError

redis = pytest.importorskip(
    "redis", reason="there is no package redis; install it with: pip install -r requirements-class.txt"
)
SERVER = shutil.which("redis-server")
N_STUDENTS = 60
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


def test_sixty_students_answer_at_once_at_two_replicas_and_every_answer_counts(replicas: Replicas) -> None:
    """Every third one joins again and answers at the other replica, as a phone that slept."""
    both, code = replicas(), classes.new_class(now=time.time()).code
    both[0].open(classes.Class(code, expires=time.time() + 600))
    both[0].change(code, lambda state: classes.ask(state, Question("Which?", ("a", "b", "c"), answer="1")))
    together = threading.Barrier(N_STUDENTS, timeout=60)
    who = [classes.student_id(code, f"browser {number}") for number in range(N_STUDENTS)]

    def student(number: int) -> None:
        together.wait()
        for store in (both[number % 2], both[(number + (number % 3 == 0)) % 2]):
            assert store.change(code, lambda state: classes.join(state, who[number], now=time.time())) is not None
        together.wait()
        assert store.change(code, lambda state: classes.answer(state, who[number], 0, str(number % 3))) is not None

    with ThreadPoolExecutor(N_STUDENTS) as pool:
        list(pool.map(student, range(N_STUDENTS)))
    time.sleep(stores._RECENT)
    state = both[1].read(code)
    assert sorted(student.number for student in state.students.values()) == list(range(N_STUDENTS))
    assert state.question.answers == {one: str(number % 3) for number, one in enumerate(who)}


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
