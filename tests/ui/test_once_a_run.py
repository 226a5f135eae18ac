"""A run of the script reads each value from disk once; the next run reads it again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextvars import Context

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine
from ui.server.streamlit_private import runs_a_script
from ui.words.once_a_run import begin_run, once_a_run
from ui.words.texts import ROOT
from ui.words.translations import read_texts


def test_a_value_is_read_once_within_a_run_and_again_in_the_next() -> None:
    values = iter(range(10))
    ask = once_a_run(lambda: next(values))

    def run() -> None:
        begin_run()
        assert (ask(), ask()) == (0, 0)
        begin_run()
        assert ask() == 1

    Context().run(run)
    assert (ask(), ask()) == (2, 3), "where no run has begun, nothing is kept"


def test_a_text_file_is_read_once(open_app: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app("attention", checkpoint="tiny-translator", sentence="The cat sat on the mat.")
    is_fine(app.run())
    asked, stat = [], os.stat

    def counted(path: object, *how: object, **more: object) -> os.stat_result:
        asked.extend([str(path)] if str(path).endswith(".toml") else [])
        return stat(path, *how, **more)

    monkeypatch.setattr(os, "stat", counted)
    is_fine(app.run())
    assert not asked, "there used to be a hundred requests for the age of a text"


def test_a_warm_run_asks_the_disk_little(open_app: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app("attention", checkpoint="tiny-translator", sentence="The cat sat on the mat.")
    is_fine(app.run())
    asked: Counter[str] = Counter()
    stat = os.stat

    def counted(path: object, *how: object, **more: object) -> os.stat_result:
        # reads by the test itself do not count
        if runs_a_script() and str(path).endswith("config.json"):
            asked[str(path)] += 1
        return stat(path, *how, **more)

    monkeypatch.setattr(os, "stat", counted)
    is_fine(app.run())
    # Once each for existence and age, and once more with a checkpoint's weights. There used to be a hundred reads.
    assert asked and max(asked.values()) <= 3, asked.most_common(3)


def test_a_run_asks_the_session_for_its_language_hardly_ever(
    open_app: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app("attention", checkpoint="tiny-translator", sentence="The cat sat on the mat.", language="fr")
    is_fine(app.run())
    asked: list[str] = []
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: asked.append("session") or "fr")
    is_fine(app.run())
    assert app.button(key="attention next").label == read_texts(ROOT, "attention", "fr")["next"]
    assert len(asked) <= 1, "a run needs hundreds of texts, and looks once whose they are"
