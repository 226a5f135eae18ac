"""Worksheets opened as files: accessible, as wide as a phone, black on white."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

import transformer
from tests.browser.axe import findings
from tests.browser.offline import opened_offline
from tests.nights import in_turn
from ui.shell.focus import Focus
from ui.shell.guidance.lessons import Lesson, Step
from ui.words.texts import page_text
from views.lessons.worksheet import lesson_sheet, with_figures, worksheet
from views.lessons.worksheet_drawings import figure_of

pytestmark = pytest.mark.browser
SENTENCE = "The old man told us a long story."
LINK = "http://school.example:8501/attention?checkpoint=tiny-translator&layer=1"
STEP = Step("attention", "One", "Do.", "See.", "Which?", "this one", "Because.", "", (("that one", "As if."),))


@pytest.fixture(scope="module")
def documents(checkpoints_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a worksheet with a figure, and its key."""
    trace = transformer.trace(transformer.load(checkpoints_folder / "tiny-translator"), SENTENCE)
    focus, text = Focus(trace.checkpoint.name, SENTENCE, layer=1, head=1, token=1), page_text("lessons")
    sheet = lesson_sheet(Lesson("01-mine", "Mine", "To see.", 10, (STEP,)), text=text, link=lambda number: LINK)
    sheet = with_figures(sheet, [[figure_of("attention", focus, trace, text=text)]])
    place = tmp_path_factory.mktemp("documents")
    files = {name: place / f"{name}.html" for name in NAMES}
    for name, file in files.items():
        file.write_text(worksheet(sheet, key=name == "key", text=text), encoding="utf-8")
    return files


NAMES = ("worksheet", "key")


@pytest.mark.parametrize(("theme", "name"), in_turn(("light", "dark"), NAMES))
def test_a_document_is_accessible_and_fits_a_phone(
    chromium: Browser, documents: dict[str, Path], name: str, theme: str
) -> None:
    with opened_offline(chromium, documents[name], dark=theme == "dark") as page:
        page.locator("canvas").and_(page.locator("[data-geometry]")).first.wait_for()
        assert findings(page) == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_worksheet_is_black_on_white_and_has_the_code_of_its_link(
    chromium: Browser, documents: dict[str, Path]
) -> None:
    with opened_offline(chromium, documents["worksheet"], dark=True) as page:
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator("a[href^=http]").inner_text() == LINK
        code = page.get_by_role("img", name=page_text("lessons")["sheet_code"])
        assert code.bounding_box()["width"] > 70
