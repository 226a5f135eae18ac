"""Every view of every page with guests opens, or states what this model does not expose."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.page_views import SIDEBAR, TRANSLATOR, VIEWS, WRITERS, View
from tests.transformer.guests import tiny_guests, tiny_image_guests
from ui.words.texts import common

BY_DAY = ("phi", "mixtral", "bloom", "xlm-roberta", "mbart")
NOT_SHOWN = "This model is computed by the code of transformers, which does not expose "
OPENED = [view for view in VIEWS if view.box == SIDEBAR]
ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "guests.md"
_PAGES_OF_NO_MODEL = ("lessons", "by_hand")
# How each kind of guest is written to a folder; a guest that reads something else gets a line here.
WRITE = dict.fromkeys(tiny_guests.GUESTS, tiny_guests.guest_checkpoint)
WRITE |= dict.fromkeys(tiny_image_guests.IMAGE_GUESTS, tiny_image_guests.image_checkpoint)
TABLE_ONLY = "GUEST_PAGES" in os.environ


def guests_of(view: View) -> list[str]:
    """Return the guests that a view applies to: with two stacks, or with a decoder."""
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
            WRITE[kind](kind, guests_folder)
        return open_app(view.page, checkpoint=kind, **view.address)

    return opened


def outcome(app: AppTest, kind: str) -> str:
    """Return "" if the view shows everything, else the sentence about what it does not show."""
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]
    nothing = common("problem.no_image_words").format(name=kind).split(". ")[0]
    said = [info.value.removeprefix(NOT_SHOWN) for info in app.info if info.value.startswith(NOT_SHOWN)]
    said += [
        nothing.replace(kind, "anything, because it") + "."
        for info in app.info
        if nothing in info.value.replace("\\", "")
    ]
    if common("problem.needs_text", name=kind) in [info.value.replace("\\", "") for info in app.info]:
        said.append("anything, because the page needs a model that reads text.")
    assert len(said) <= 1, said
    return said[0] if said else ""


def first_views() -> dict[str, str]:
    """Return the view of each page about the guest that represents its kind in the table."""
    found: dict[str, str] = {}
    of_all = [view for view in OPENED if len(view.kinds) > 1 and view.page not in _PAGES_OF_NO_MODEL]
    for view in sorted(of_all, key=lambda view: bool(view.address)):
        found.setdefault(view.page, view.name)
    return {view.page: found[view.page] for view in of_all}


def cases() -> list[object]:
    """Return each view once, with the five guests in turn; nightly runs test every guest.

    For the table, return the views that it shows, with every guest.
    """
    found: list[object] = []
    if TABLE_ONLY:
        shown = [view for view in OPENED if view.name in first_views().values() and len(view.kinds) > 1]
        return [pytest.param(view, kind, id=f"{view.name}, {kind}") for kind in WRITE for view in shown]
    for number, view in enumerate(OPENED):
        own = [kind for kind in BY_DAY if kind in guests_of(view)]
        for kind in guests_of(view):
            day = kind == own[number % len(own)]
            found.append(pytest.param(view, kind, id=f"{view.name}, {kind}", marks=() if day else pytest.mark.nightly))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("view", "kind"), cases())
def test_every_view_opens_or_says_what_it_does_not_show(open_guest: Callable, view: View, kind: str) -> None:
    found = outcome(open_guest(view, kind), kind)
    if file := os.environ.get("GUEST_PAGES"):
        with open(file, "a", encoding="utf-8") as table:
            table.write(json.dumps([kind, view.name, found]) + "\n")


def table_of(outcomes: Iterable[tuple[str, str, str]]) -> str:
    """Return the table of docs/guests.md from (guest, view, message): a letter for each message."""
    pages = {name: page for page, name in first_views().items()}
    found = {(kind, pages[name]): said for kind, name, said in outcomes if name in pages}
    columns = list(first_views())
    reasons = sorted({said for said in found.values() if said})
    letters = {said: "abcdefghijklmnopqrstuvwxyz"[place] for place, said in enumerate(reasons)}
    rows = [
        f"| `model_type` | {' | '.join(name.replace('_', ' ') for name in columns)} |",
        "|---|" + ":-:|" * len(columns),
    ]
    for kind in WRITE:
        cells = [letters.get(found[kind, page], "●") if (kind, page) in found else "?" for page in columns]
        rows.append(f"| `{kind}` | {' | '.join(cells)} |")
    legend = [f"- {letter}: {said.replace(chr(92), '')}" for said, letter in letters.items()]
    return "\n".join([*rows, "", *legend]) + "\n"


@pytest.mark.skipif(not TABLE_ONLY, reason="writes the table from the file that GUEST_PAGES names")
def test_the_table_of_the_documentation_is_written_from_what_the_pages_did() -> None:
    """To be run last: ``GUEST_PAGES=FILE pytest -m "slow or not slow" test_guest_pages.py``."""
    lines = Path(os.environ["GUEST_PAGES"]).read_text(encoding="utf-8").splitlines()
    table = table_of(tuple(json.loads(line)) for line in lines)
    assert "?" not in table, "some guests have not opened some page"
    before = TABLE.read_text(encoding="utf-8").split("| `model_type`")[0]
    TABLE.write_text(before + table, encoding="utf-8")


def test_the_table_of_the_documentation_has_every_guest_and_every_page() -> None:
    text = TABLE.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert [row.split("`")[1] for row in rows[1:]] == list(WRITE)
    assert f"of {len(WRITE)} model types, {len(tiny_image_guests.IMAGE_GUESTS)} of which read images" in text
    assert [name.strip() for name in rows[0].split("|")[2:-1]] == [name.replace("_", " ") for name in first_views()]
