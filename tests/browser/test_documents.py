"""Documents opened as files: accessible in light and dark, as wide as the window, complete on paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import transformer
from glassformer.commands import atlas, explain
from tests.browser.axe import findings
from tests.browser.offline import opened_offline
from tests.nights import in_turn
from ui.shell.focus import Focus
from ui.words.texts import page_text
from views.lessons.worksheet import worksheet
from views.lessons.worksheet_drawings import figure_of
from views.lessons.worksheet_questions import view_sheet
from views.overview.gallery import Entry, write_gallery
from views.overview.handout import handout

pytestmark = pytest.mark.browser
SENTENCE = "The old man told us a long story."
LINK = "http://school.example:8501/attention?checkpoint=tiny-translator&layer=1"


@pytest.fixture(scope="module")
def documents(checkpoints_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return one file of every kind."""
    place, folder = tmp_path_factory.mktemp("documents"), checkpoints_folder / "tiny-translator"
    sentences = place / "sentences.txt"
    sentences.write_text(f"{SENTENCE}\nShe saw the cat.\n", encoding="utf-8")
    trace = transformer.trace(transformer.load(folder), SENTENCE)
    focus, text = Focus(trace.checkpoint.name, SENTENCE, layer=1, head=1, token=1), page_text("lessons")
    sheet = view_sheet(page_text("attention"), focus, trace, text=text, link=LINK)
    sheet = replace(sheet, figure=[figure_of("attention", focus, trace, text=text)])
    written = {
        "handout": handout(trace, focus),
        "report": explain(folder, sentences),
        "worksheet": worksheet(sheet, key=False, text=text),
        "key": worksheet(sheet, key=True, text=text),
    }
    files = {name: place / f"{name}.html" for name in written}
    for name, file in files.items():
        file.write_text(written[name], encoding="utf-8")
    picture, index = write_gallery((Entry(str(folder), SENTENCE),), place / "gallery")
    return files | {"atlas": atlas(folder, sentences, place / "atlas")[0], "picture": picture, "index": index}


NAMES = ("handout", "report", "worksheet", "key", "atlas", "picture")


@pytest.mark.parametrize(("theme", "name"), in_turn(("light", "dark"), NAMES))
def test_a_document_is_accessible_and_fits_a_phone(
    chromium: Browser, documents: dict[str, Path], name: str, theme: str
) -> None:
    with opened_offline(chromium, documents[name], dark=theme == "dark") as page:
        page.locator("canvas").and_(page.locator("[data-geometry]")).first.wait_for()
        assert findings(page) == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_index_of_a_gallery_is_accessible(chromium: Browser, documents: dict[str, Path]) -> None:
    page = chromium.new_page()
    page.goto(documents["index"].as_uri())
    assert findings(page) == []
    page.locator("a").first.click()
    page.wait_for_url(documents["picture"].as_uri())
    page.close()


def test_paper_has_every_view_and_no_button(chromium: Browser, documents: dict[str, Path]) -> None:
    with opened_offline(chromium, documents["handout"]) as page:
        page.locator("section canvas").last.and_(page.locator("[data-geometry]")).wait_for()
        views = page.locator(".view")
        assert page.locator(".view:visible").count() < views.count()
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator(".view:visible").count() == views.count()
        assert page.locator(".view canvas:not([data-geometry])").count() == 0, "every view is drawn"
        assert page.locator("button:visible").and_(page.locator(".buttons button, .lead button")).count() == 0
        assert page.locator("nav").is_hidden()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.emulate_media(media="screen")
        assert page.locator(".view:visible").count() < views.count()


def test_a_worksheet_is_black_on_white_and_has_the_code_of_its_link(
    chromium: Browser, documents: dict[str, Path]
) -> None:
    with opened_offline(chromium, documents["worksheet"], dark=True) as page:
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator("a[href^=http]").inner_text() == LINK
        code = page.get_by_role("img", name=page_text("lessons")["sheet_code"])
        assert code.bounding_box()["width"] > 70
