"""Shared helpers for tests of pages: the texts of a page, and the Python code that it shows."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.proto.RootContainer_pb2 import RootContainer
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileStorage
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState
from streamlit.testing.v1 import AppTest, app_test

from charts.toolkit.payload_bytes import unpack
from tests.held import held_by, shared_objects
from transformer.text.sentence_files import read_sentences
from ui.page import page as frame
from ui.shell import page_state
from ui.words.texts import common

KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")  # a checkpoint of each kind of model
PLACES = [  # each kind of attention
    ("tiny-translator", "encoder", "self"),
    ("tiny-translator", "decoder", "self"),
    ("tiny-translator", "decoder", "cross"),
    ("tiny-gpt", "decoder", "self"),
    ("tiny-bert", "encoder", "self"),
    ("tiny-sentiment", "encoder", "self"),
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a test of several kinds of model run with one of them by day."""
    for item in items:
        if item.nodeid.startswith("tests/pages/") and (case := getattr(item, "callspec", None)):
            kinds = [name for name, value in case.params.items() if isinstance(value, str) and value in KINDS]
            if kinds and not item.get_closest_marker("sample") and not item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.sample(*kinds))


@pytest.fixture
def run_snippet(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a page's Python with ``checkpoints/`` pointing to those of the app; return what it prints.

    Its variables are put into ``names``.
    """
    monkeypatch.chdir(tmp_path)

    def run(page: AppTest | str, names: dict[str, object] | None = None) -> str:
        snippet, printed = page if isinstance(page, str) else codes(page)[-1], io.StringIO()
        if not (tmp_path / "checkpoints").exists():
            (tmp_path / "checkpoints").symlink_to(os.environ["GLASSFORMER_CHECKPOINTS"])
        with contextlib.redirect_stdout(printed):
            alone, _, _source_of_its_functions = snippet.partition("\n\n\n# ")
            exec(compile(alone, "snippet", "exec"), {} if names is None else names)  # the code that the page shows
        return printed.getvalue()

    return run


def codes(app: AppTest) -> list[str]:
    """Return all code of a page, with collapsed parts opened."""
    for fold in app.expander:
        if (fold.key or "").startswith("code "):
            app.session_state[fold.key] = True
    return [block.value for block in app.run().code]


@pytest.fixture
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Let pages measure over a few of the included sentences; return those."""
    sentences = read_sentences()[:12]
    for module in ("ui.sections.sentence_list", "views.heads.heads_sections"):
        monkeypatch.setattr(f"{module}.read_sentences", lambda: sentences)
    return sentences


@pytest.fixture
def open_page(open_app: Callable[..., AppTest], request: pytest.FixtureRequest) -> Callable[..., AppTest]:
    """Return ``open_page(step="2")``, the module's ``PAGE`` with this address over ``USUAL``."""
    page, usual = request.module.PAGE, request.module.USUAL

    def opened(**address: object) -> AppTest:
        app = open_app(page, **{**usual, **address})
        is_fine(app)
        return app

    return opened


def drawn(app: AppTest, key: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the metadata and the arrays that a drawing of the canvas was sent."""
    (sent,) = [component.proto.bytes for component in app.get("bidi_component") if component.key == key]
    return unpack(sent)


def metrics(app: AppTest) -> dict[str, str]:
    """Return the numbers of a page that have a label, by their label."""
    return {metric.label: metric.value for metric in app.metric}


def firing_table(app: AppTest) -> pd.DataFrame:
    """Return the table of where a head fires."""
    return next(table.value for table in app.dataframe if common("fires.context") in table.value)


def with_e(text: str) -> str:
    """Convert powers of ten to Python's notation: 8.65·10⁻⁷² becomes 8.65e-72."""
    return re.sub(r"·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda found: "e" + found[1].translate(_PLAIN), text)


_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def said(app: AppTest) -> str:
    """Return all paragraphs and captions of a page as the reader sees them.

    Escapes of ``as_plain`` and links to the glossary are removed.
    """
    found = "\n".join(element.value for element in (*app.markdown, *app.caption))
    found = re.sub(r'\[([^\]]*)\]\(glossary\?\S+ "[^"]*"\)', r"\1", found)
    found = re.sub(r"(?<!\\)&#(\d+);", lambda reference: chr(int(reference[1])), found)  # line breaks
    return found.replace("\\", "").replace(":color[]{}", "")


def is_fine(app: AppTest) -> None:
    """Check that the page has no exception and no error message."""
    assert not app.exception
    assert not app.error, [error.value for error in app.error]
    assert not app.warning, [warning.value for warning in app.warning]


def open_path(app: AppTest, path: object) -> AppTest:
    """Type a path on the Checkpoint page and open it."""
    app.text_input(key="typed folder").set_value(str(path))
    return next(button for button in app.button if button.label == "Open").click().run()


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the pages whose frame was drawn, once per run."""
    names: list[str] = []
    draw = frame._draw_frame
    monkeypatch.setattr(frame, "_draw_frame", lambda p, *room, **how: names.append(p.name) or draw(p, *room, **how))
    return names


@pytest.fixture(autouse=True)
def sessions_hold_names_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if the last session of a page test keeps a shared object (``ui/shell/fragments.py``)."""
    last: list[AppTest] = []
    files: list[MediaFileManager] = []
    run = AppTest._run

    def remember(app: AppTest, *arguments: object, **named: object) -> AppTest:
        last[:] = [app]
        return run(app, *arguments, **named)

    def manager(storage: MediaFileStorage) -> MediaFileManager:
        files[:] = [MediaFileManager(storage)]
        return files[0]

    monkeypatch.setattr(AppTest, "_run", remember)
    monkeypatch.setattr(app_test, "MediaFileManager", manager)
    yield
    assert not [*shared_objects([part for app in last for part in held_by(app)] + files)]


@pytest.fixture(autouse=True)
def fragments_draw_no_events(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if a fragment draws a toast or a bare style sheet, which would replace one of the page's."""
    drawn: list[str] = []
    enqueue = DeltaGenerator._enqueue

    def watch(place: DeltaGenerator, kind: str, *arguments: object, **named: object) -> object:
        if place._root_container == RootContainer.EVENT and ThreadState.get().fragment_id:
            drawn.append(f"{kind} in {ThreadState.get().fragment_id}: {str(arguments[0])[:200]}")
        return enqueue(place, kind, *arguments, **named)

    monkeypatch.setattr(DeltaGenerator, "_enqueue", watch)
    yield
    assert not drawn, drawn


def choose_text(app: AppTest, key: str, *texts: object) -> AppTest:
    """Set a control's value as an address does, without drawing the control; the next run draws it."""
    page = app.session_state[page_state._PAGE]
    app.session_state[page_state._CHOICES][page].set[key] = tuple(map(str, texts))
    return app


def chosen_texts(app: AppTest, key: str) -> tuple[str, ...]:
    """Return the value of a control in the address, now or after the run; empty for its default."""
    state = {name: app.session_state[name] for name in (*page_state.NAMES, key) if name in app.session_state}
    with mock.patch.object(st, "session_state", state):
        return page_state.values(key)
