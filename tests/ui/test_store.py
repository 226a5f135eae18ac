"""The store of results: what is kept and dropped, simultaneous requests, and sizes of results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from transformer.interventions.experiment import experiment
from transformer.runs.run import Run
from ui.compute import store as module
from ui.compute.store import SHELVES, Store, limits, weigh

NAME = "a result"
ROOM = {"models": 10**9, "traces": 10**9, "results": 10**9}


def of_texts(limit: int = 10) -> Store:
    """Each text takes as many bytes as it has letters."""
    return Store({"results": limit}, weigh=lambda text, kept: (len(text), "results"))


def bytes_of(kept: Store) -> tuple[int, int]:
    return len(kept), kept.n_bytes("results")


def test_what_is_there_is_not_computed_again() -> None:
    kept = of_texts()
    first = kept.get("a", NAME, lambda: "one")
    assert kept.get("a", NAME, lambda: pytest.fail("computed twice")) is first
    assert kept.known("a", NAME) is first and bytes_of(kept) == (1, 3)
    assert kept.get("a", (NAME, 2), lambda: "two") == "two" and kept.get("b", NAME, lambda: "six") == "six"
    assert kept.known("b", (NAME, 2)) is None, "another name and another owner are another result"


def test_what_was_not_used_for_longest_goes_when_the_bytes_are_too_many() -> None:
    kept = of_texts(limit=10)
    for key in "abc":
        kept.get(key, NAME, lambda: "xxx")
    assert kept.known("a", NAME) == "xxx"  # which counts as used
    kept.get("d", NAME, lambda: "xxxx")  # 13 bytes with b, 10 without it
    assert kept.n_bytes("results") == 10 and [key for key in "abcd" if kept.known(key, NAME)] == ["a", "c", "d"]
    for text, size in (("x" * 50, 50), ("xxx", 3)):
        kept.get(text, NAME, lambda text=text: text)
        assert bytes_of(kept) == (1, size), "what is larger than the limit is kept alone, until another comes"
    for text in ("1", "12", "123"):
        kept.keep("xxx", NAME, text)
    assert kept.known("xxx", NAME) == "123" and bytes_of(kept) == (1, 3), "a newer one takes the place of the older"


def test_thirty_that_ask_at_once_wait_for_one_computation() -> None:
    kept, computed = of_texts(), []

    def compute() -> str:
        computed.append(threading.get_ident())
        time.sleep(0.02)
        return "one"

    with ThreadPoolExecutor(30) as pool:
        found = list(pool.map(lambda _: kept.get("a", NAME, compute), range(30)))
    assert len(computed) == 1
    assert all(value is found[0] for value in found)


def test_different_keys_are_computed_side_by_side_and_one_within_another() -> None:
    kept, both = of_texts(), threading.Barrier(2, timeout=60)

    def compute() -> str:
        both.wait()  # would never end if one had to wait for the other
        return "one"

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda key: kept.get(key, NAME, compute), "ab")) == ["one", "one"]
    assert kept.get("a", "outer", lambda: kept.get("a", "inner", lambda: "x") + "!") == "x!" and len(kept) == 4


def test_a_run_that_is_ended_leaves_nothing_behind_and_the_next_computes() -> None:
    class Ended(BaseException):
        pass

    def compute() -> str:
        raise Ended

    kept = of_texts()
    for _ in range(2):
        with pytest.raises(Ended):
            kept.get("a", NAME, compute)
    assert kept.get("a", NAME, lambda: "one") == "one"
    kept.clear()
    assert bytes_of(kept) == (0, 0)


def test_the_bytes_are_right_when_many_come_and_go() -> None:
    kept = of_texts(limit=200)

    def use(number: int) -> None:
        key = number * 7919 % 61
        assert kept.get(key, NAME, lambda: "x" * (key + 1)) == "x" * (key + 1)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(use, range(3000)))
    there = [key + 1 for key in range(61) if kept.known(key, NAME)]
    assert kept.n_bytes("results") == sum(there) <= 200


# ---- checkpoints and what was made with them ------------------------------------------------------------------------


def test_traces_do_not_push_out_what_took_long(tiny_checkpoint: Callable) -> None:
    kept = Store({**ROOM, "traces": 1})
    run = Run(tiny_checkpoint("translator"), "The cat.")
    kept.get(run, "attributions", lambda: "half a minute of work")
    for sentence in ("The cat.", "The dog.", "The hat."):
        other = replace(run, sentence=sentence)
        kept.get(other, "trace", lambda other=other: transformer.trace_of(other))
    assert kept.known(run, "attributions") and kept.known(run, "trace") is None
    assert kept.known(other, "trace").sentence == "The hat."


def test_with_a_model_goes_what_would_keep_it_in_memory(tiny_checkpoint: Callable) -> None:
    kept = Store({**ROOM, "models": 1})
    own, other = tiny_checkpoint("translator"), tiny_checkpoint("gpt")
    kept.get("path", ("checkpoint", 1), lambda: own)
    run = Run(own, "The cat.")
    kept.get(run, "trace", lambda: transformer.trace_of(run))
    kept.get(own, "displays", lambda: ("a", "b"))
    kept.get(Run(other, "The cat."), "lens", lambda: "of another model")
    kept.get("other path", ("checkpoint", 1), lambda: other)
    assert kept.known("path", ("checkpoint", 1)) is own, "two models may stand side by side"
    kept.known("other path", ("checkpoint", 1))
    kept.get("third path", ("checkpoint", 1), lambda: tiny_checkpoint("bert"))
    assert kept.known("path", ("checkpoint", 1)) is kept.known(run, "trace") is kept.known(own, "displays") is None
    assert len(kept) == 3 and kept.n_bytes("traces") == 0


def test_what_is_computed_with_a_dropped_model_is_not_kept(tiny_checkpoint: Callable) -> None:
    kept = Store({**ROOM, "models": 1})
    own = tiny_checkpoint("translator")
    run = Run(replace(own, prompt=None), "The cat.")  # another object with the same model, as for a chat
    kept.get("path", ("checkpoint", 1), lambda: own)

    def trace_while_others_come() -> transformer.Trace:
        for other in ("gpt", "bert"):
            kept.get(other, ("checkpoint", 1), lambda other=other: tiny_checkpoint(other))
        return transformer.trace_of(run)

    assert kept.get(run, "trace", trace_while_others_come).sentence == "The cat."
    assert kept.known("path", ("checkpoint", 1)) is kept.known(run, "trace") is None
    kept.keep("path", ("checkpoint", 1), own)
    kept.keep("path", ("checkpoint", 1), own)
    kept.get(run, "lens", lambda: "with a model that is there again")
    assert kept.known(run, "lens")


def test_what_holds_a_trace_is_on_the_shelf_of_traces(tiny_checkpoint: Callable) -> None:
    """The kit keeps an experiment, whose trace is as large as another, under a name like any other's."""
    kept, run = Store(ROOM), Run(tiny_checkpoint("translator"), "The cat.")
    trace = transformer.trace_of(run)
    for name, value in (("numbers", np.zeros(1000)), ("calc", experiment(trace, [])), ("rows", [{"of": trace}])):
        kept.keep(run, (name,), value)
    assert 8000 < kept.n_bytes("results") < 20_000 < kept.n_bytes("traces")
    kept.give_up("traces")
    assert kept.known(run, ("numbers",)) is not None and len(kept) == 1


# ---- how much a result takes ----------------------------------------------------------------------------------------


def bytes_in(value: object) -> int:
    return weigh(value)[0]


@dataclass(frozen=True)
class Found:
    numbers: np.ndarray
    parts: tuple


def test_a_result_takes_what_its_arrays_take_each_counted_once() -> None:
    large = np.zeros(1_000_000, np.float32)
    alone = bytes_in(Found(large, ()))
    assert 4_000_000 < alone < 4_010_000
    assert bytes_in(Found(large, (large, {"again": [large]}))) < alone + 1000
    assert bytes_in(Found(large, (large.copy(),))) > 8_000_000


def test_a_result_may_hold_numbers_of_any_name() -> None:
    @dataclass(frozen=True, slots=True)
    class Cost:
        parameters: int
        n_bytes: str

    assert 4096 < bytes_in((Cost(3, "?"), Cost(4, "?"), None, 1.5, {"a"})) < 10_000


def test_a_trace_and_a_model_take_the_bytes_of_their_tensors(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, "The cat.")
    recorded = sum(trace.values(name).nbytes for name in trace.names())
    assert recorded < bytes_in(trace) < recorded + 50_000
    weights = sum(parameter.nbytes for parameter in checkpoint.model.parameters())
    assert weights < bytes_in(checkpoint) < weights + 50_000


def test_a_trace_that_is_kept_by_itself_is_not_counted_in_an_effect(tiny_checkpoint: Callable) -> None:
    kept, run = Store(ROOM), Run(tiny_checkpoint("translator"), "The cat.")
    trace = kept.get(run, "trace", lambda: transformer.trace_of(run))
    before = kept.n_bytes("traces")
    kept.get(run, ("experiment",), lambda: experiment(trace, [transformer.ablate_head("encoder", layer=0, head=0)]))
    assert before < kept.n_bytes("traces") < 2 * before + 50_000


# ---- settings, and the text that is said meanwhile ------------------------------------------------------------------


def test_the_limits_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for shelf in SHELVES:
        monkeypatch.delenv(f"GLASSFORMER_{shelf.upper()}_MB", raising=False)
    usual = {"models": 256_000_000, "traces": 128_000_000, "results": 64_000_000, "figures": 16_000_000}
    assert limits() == usual and sum(usual.values()) < 500_000_000
    monkeypatch.setenv("GLASSFORMER_TRACES_MB", "50")
    monkeypatch.setenv("GLASSFORMER_RESULTS_MB", "")
    assert limits() == {**usual, "traces": 50_000_000}


@pytest.mark.parametrize(("language", "said"), [("en", "Searching …"), ("fr", "Recherche …")])
def test_what_is_said_while_waiting_is_in_the_language_of_who_waits(
    language: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = []
    spinner = module.st.spinner
    monkeypatch.setattr(module.st, "spinner", lambda text: heard.append(text) or spinner(text))
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: language)
    monkeypatch.setattr(module, "of_a_test", Store(ROOM), raising=False)

    def script() -> None:
        import streamlit as st

        from ui.compute import store as module

        st.markdown(module.of_a_test.get("a", "a result", lambda: "found", wait="wait.search"))

    app = AppTest.from_function(script)
    assert app.run().markdown[0].value == app.run().markdown[0].value == "found"
    assert heard == [said]
    module.of_a_test.get("b", NAME, lambda: "found", wait="wait.search")
    assert heard == [said], "without a page there is nobody to say it to"
