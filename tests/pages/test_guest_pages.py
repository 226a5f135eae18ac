"""Every view of every page with guests: it opens, or says in one sentence what this model does not show."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.page_views import SIDEBAR, TRANSLATOR, VIEWS, WRITERS, View
from tests.transformer.guests import tiny_guests

pytest.importorskip("transformers")

BY_DAY = ("phi", "mixtral", "bloom", "xlm-roberta", "mbart")
NOT_SHOWN = "This model is run by its own code in transformers, which does not expose "
OPENED = [view for view in VIEWS if view.box == SIDEBAR]


def guests_of(view: View) -> list[str]:
    """Those with what the view shows: two stacks, or a decoder."""
    found = {TRANSLATOR: tiny_guests.WRITERS, WRITERS: {**tiny_guests.DECODERS, **tiny_guests.WRITERS}}
    return list(found.get(tuple(view.kinds), tiny_guests.GUESTS))


@pytest.fixture(scope="module")
def guests_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guests")


@pytest.fixture
def open_guest(open_app: Callable, guests_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(guests_folder))

    def opened(view: View, kind: str) -> AppTest:
        if not (guests_folder / kind).exists():
            tiny_guests.guest_checkpoint(kind, guests_folder)
        return open_app(view.page, checkpoint=kind, **view.address)

    return opened


def outcome(app: AppTest) -> str:
    """ "" where the view shows everything, else the sentence that says what it does not show."""
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]
    said = [info.value for info in app.info if info.value.startswith(NOT_SHOWN)]
    assert len(said) <= 1, said
    return said[0].removeprefix(NOT_SHOWN) if said else ""


def cases() -> list[object]:
    """By day each view once, the five guests in turn; at night every guest."""
    found = []
    for number, view in enumerate(OPENED):
        own = [kind for kind in BY_DAY if kind in guests_of(view)]
        for kind in guests_of(view):
            day = kind == own[number % len(own)]
            found.append(pytest.param(view, kind, id=f"{view.name}, {kind}", marks=() if day else pytest.mark.nightly))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("view", "kind"), cases())
def test_every_view_opens_or_says_what_it_does_not_show(open_guest: Callable, view: View, kind: str) -> None:
    found = outcome(open_guest(view, kind))
    if file := os.environ.get("GUEST_PAGES"):
        with open(file, "a", encoding="utf-8") as table:
            table.write(json.dumps([kind, view.name, found]) + "\n")
