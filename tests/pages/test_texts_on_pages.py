"""Page × kind of model × text: drawn, or refused in one sentence; a sample in every run, all at night."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextArea, TextInput

import transformer
from tests.kinds_of_text import SENDABLE, UNREADABLE
from tests.pages.conftest import is_fine
from tests.pages.fuzzing import PAGES
from tests.pages.page_views import KINDS, SIDEBAR, VIEWS, View
from transformer.errors import InputError
from ui.shell.navigation import NO_SENTENCE

TYPED = tuple(view for view in VIEWS if view.box != SIDEBAR or view.page not in NO_SENTENCE)
FIRST = "The old man told us a story."
BY_DAY = 2  # texts per view in every run, in addition to one that is refused: each text on a view at least once


def in_turn(number: int) -> list[str]:
    others = [name for name in SENDABLE if name not in UNREADABLE]
    places = (number * BY_DAY + place for place in range(BY_DAY))
    return [UNREADABLE[number % len(UNREADABLE)], *(others[place % len(others)] for place in places)]


def cases() -> list[object]:
    """Return kinds, views and texts; what is found for a text and a kind serves all its views.

    Every run tests each view with a few texts and one kind, the kinds in turn; nightly runs test it with all of both.
    """
    found = []
    for kind in KINDS:
        for number, view in enumerate(TYPED):
            if kind in view.kinds:
                name = f"{view.name}, {kind}"
                if view.kinds[number % len(view.kinds)] == kind:
                    found.append(pytest.param(view, kind, in_turn(number), id=name))
                found.append(pytest.param(view, kind, [*SENDABLE], id=f"{name}, all", marks=pytest.mark.nightly))
    return found


@pytest.fixture
def folder(
    checkpoints_folder: Path, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Return the checkpoints a page finds; third-party ones, slow to make, only if a test needs one."""
    if kind.startswith("hf-"):
        more = request.getfixturevalue("families_folder")
        monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", f"{checkpoints_folder}:{more}")


@pytest.fixture(scope="session")
def refusal(tiny_checkpoint: Callable, request: pytest.FixtureRequest) -> Callable[[str, str], str]:
    """Return ``refusal(kind, text)``, the reason why the library does not read a text; empty if it does."""

    @cache
    def ask(kind: str, text: str) -> str:
        load = request.getfixturevalue("family") if kind.startswith("hf-") else tiny_checkpoint
        try:
            transformer.trace(load(kind), text)
        except InputError as error:
            return str(error)
        return ""

    return ask


@pytest.mark.slow
@pytest.mark.parametrize(("view", "kind", "names"), cases())
def test_any_text_is_drawn_or_refused_in_a_sentence(
    folder: None, open_app: Callable, refusal: Callable, view: View, kind: str, names: list[str]
) -> None:
    """Texts are typed one after the other on one page, so that leftovers of one would show in the next."""
    app = open_app(view.page, checkpoint=kind, sentence=FIRST, **view.address)
    is_fine(app)
    wrong = []
    for name in names:
        text, reason = SENDABLE[name], refusal(kind, SENDABLE[name])
        box_of(app, view.box).set_value(text).run()
        try:
            assert not app.exception and not app.error, [error.value for error in app.error]
            assert box_of(app, view.box).value == text
            if reason:
                assert is_said(reason if text.strip() else view.nothing or reason, app) == view.refuses
            else:
                is_fine(app)
                view.check(app, text)
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


def box_of(app: AppTest, key: str) -> TextArea | TextInput:
    return next(box for box in (*app.text_area, *app.text_input) if box.key == key)


def is_said(reason: str, app: AppTest) -> bool:
    """Return whether the page says it exactly once."""
    shown = [box.value.replace("\\", "").replace(":color[]{}", "") for box in (*app.warning, *app.info)]
    return sum(reason in line for line in shown) == 1


def test_every_page_and_every_text_is_tried_by_day() -> None:
    assert {view.page for view in VIEWS} == set(PAGES) and {view.page for view in TYPED} >= {*PAGES} - {*NO_SENTENCE}
    assert {name for number in range(len(TYPED)) for name in in_turn(number)} == set(SENDABLE)
