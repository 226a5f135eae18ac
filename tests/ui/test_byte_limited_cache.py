"""The cache that is limited by bytes: what stays, what goes, and what happens when many ask at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ui.compute.byte_limited_cache import ByteLimitedCache


def cache(limit: int = 10) -> ByteLimitedCache[str]:
    return ByteLimitedCache(limit=limit, size_of=len)


def test_what_is_there_is_not_computed_again() -> None:
    kept = cache()
    first = kept.get("a", lambda: "one")
    assert kept.get("a", lambda: pytest.fail("computed twice")) is first
    assert (len(kept), kept.n_bytes) == (1, 3)


def test_what_was_not_used_for_longest_goes_when_the_bytes_are_too_many() -> None:
    kept = cache(limit=10)
    for key in "abc":
        kept.get(key, lambda: "xxx")
    kept.get("a", lambda: pytest.fail("a is there"))
    kept.get("d", lambda: "xxxx")  # 13 bytes with b, 10 without
    assert kept.n_bytes == 10
    assert kept.get("a", lambda: "new") == kept.get("c", lambda: "new") == "xxx"
    assert kept.get("b", lambda: "new") == "new"


def test_what_is_larger_than_the_limit_is_kept_alone() -> None:
    kept = cache(limit=10)
    kept.get("small", lambda: "xxx")
    kept.get("large", lambda: "x" * 50)
    assert (len(kept), kept.n_bytes) == (1, 50)
    kept.get("small", lambda: "xxx")
    assert (len(kept), kept.n_bytes) == (1, 3)


def test_thirty_that_ask_at_once_wait_for_one_computation() -> None:
    kept, computed = cache(), []

    def compute() -> str:
        computed.append(threading.get_ident())
        time.sleep(0.02)
        return "one"

    with ThreadPoolExecutor(30) as pool:
        found = list(pool.map(lambda _: kept.get("a", compute), range(30)))
    assert len(computed) == 1
    assert all(value is found[0] for value in found)


def test_different_keys_are_computed_side_by_side() -> None:
    kept, both = cache(), threading.Barrier(2, timeout=10)

    def compute() -> str:
        both.wait()  # would never come to its end if one had to wait for the other
        return "one"

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda key: kept.get(key, compute), "ab")) == ["one", "one"]


def test_a_run_that_is_ended_leaves_nothing_behind_and_the_next_computes() -> None:
    class Ended(BaseException):
        pass

    def compute() -> str:
        raise Ended

    kept = cache()
    for _ in range(2):
        with pytest.raises(Ended):
            kept.get("a", compute)
    assert not kept._making
    assert kept.get("a", lambda: "one") == "one"
    kept.clear()
    assert (len(kept), kept.n_bytes) == (0, 0)


def test_the_bytes_are_right_when_many_come_and_go() -> None:
    kept = cache(limit=200)

    def use(number: int) -> None:
        key = number * 7919 % 61
        assert kept.get(key, lambda: "x" * (key + 1)) == "x" * (key + 1)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(use, range(3000)))
    assert kept.n_bytes == sum(size for _, size in kept._values.values()) <= 200
    assert not kept._making
