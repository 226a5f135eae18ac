"""Between two runs a session keeps names, and nothing that the store could not drop."""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable
from functools import partial
from weakref import WeakSet

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from tests.harness.process_memory import Held
from tests.held import LARGEST_ARRAY, shared_objects
from tests.pages.conftest import is_fine
from tests.pages.fuzzing import SENTENCE
from transformer.runs.run import Run
from ui.compute.store import store
from ui.shell.fragments import fragment


def test_what_is_shared_is_found_wherever_it_is_kept(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    run = Run(checkpoint, "The cat.")
    array = np.zeros(LARGEST_ARRAY // 8 + 1)

    def draw() -> object:
        return checkpoint

    for kept in (partial(print, run), draw, {"view": [transformer.trace(checkpoint, "The cat.")]}, lambda: array):
        found = [*shared_objects([{"a callback": kept}])]
        assert len(found) == 1 and found[0].endswith("< dict"), found
    assert not [*shared_objects([hash(run), checkpoint.name, array[:-1].copy(), store])]


def test_there_is_one_kind_of_fragment() -> None:
    sources = [path for folder in ("ui", "views", "pages") for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in sources if "st.fragment(" in path.read_text(encoding="utf-8")] == ["fragments.py"]
    assert not [path.name for path in sources if "@st.fragment" in path.read_text(encoding="utf-8")]


def test_a_fragment_refuses_what_all_sessions_share(tiny_checkpoint: Callable) -> None:
    @fragment
    def draw(checkpoint: object, *, again: object = None) -> None:
        raise AssertionError("it is not even drawn")

    checkpoint = tiny_checkpoint("translator")
    with pytest.raises(TypeError, match=r"draw got a Checkpoint, which every open tab would keep in memory; give it"):
        draw(checkpoint)
    with pytest.raises(TypeError, match="got a Run"):
        draw("a name", again=Run(checkpoint, "The cat."))


def test_the_process_of_a_tokenizer_ends_with_its_checkpoint(families_folder, open_app, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(families_folder))
    store.clear()
    monkeypatch.setitem(store.limits, "models", 1)
    before = Held.by(os.getpid())
    tabs = [open_app("tokens", checkpoint=name, sentence="The cat.") for name in ("hf-gpt2", "hf-bert", "hf-llama")]
    assert not any(tab.exception or tab.error for tab in tabs)
    # two threads, and the one that starts them
    assert until(lambda: Held.by(os.getpid()).processes <= before.processes + 3)
    store.clear()
    assert until(lambda: Held.by(os.getpid()).processes <= before.processes + 1)
    assert Held.by(os.getpid()).descriptors <= before.descriptors + 2


def until(holds: Callable[[], bool]) -> bool:
    """Return whether it becomes true within a minute."""
    end = time.monotonic() + 60
    while not (held := holds()) and time.monotonic() < end:
        gc.collect()
        time.sleep(0.05)
    return held


@pytest.mark.sample
@pytest.mark.parametrize("page", ["attention", "decoding", "tokens", "overview"])
def test_many_open_tabs_keep_no_more_checkpoints_than_the_store(
    page, checkpoints_folder, tmp_path, open_app, monkeypatch
):
    for number in range(6):
        shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path / f"copy-{number}")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    alive: WeakSet[transformer.Checkpoint] = WeakSet()
    load = transformer.load
    monkeypatch.setattr(transformer, "load", lambda path, **how: [found := load(path, **how), alive.add(found)][0])
    store.clear()
    monkeypatch.setitem(store.limits, "models", 1)
    tabs = []
    for number in range(6):
        tabs.append(open_app(page, checkpoint=f"copy-{number}", sentence=SENTENCE))
        is_fine(tabs[-1])
    gc.collect()
    assert sorted(checkpoint.name for checkpoint in alive) == ["copy-4", "copy-5"]
    is_fine(tabs[0].run())  # its checkpoint was dropped, so it is loaded again
    gc.collect()
    assert sorted(checkpoint.name for checkpoint in alive) == ["copy-0", "copy-5"]
