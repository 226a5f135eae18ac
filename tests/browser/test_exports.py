"""Exports of figures and tables: images, an offline page, and numbers."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import settle
from tests.browser.figure_files import pdf_information, pdf_letters, pdf_page, said_by
from tests.browser.offline import opened_offline

pytestmark = pytest.mark.browser


PAPER = "Save for a paper: shapes and black letters on white, as wide as a printed column"
PDF = "Save for a paper as PDF, with its letters embedded"


def saved(page: Page, button: str, folder: Path) -> tuple[str, bytes]:
    with page.expect_download(timeout=60_000) as waiting:
        page.get_by_role("button", name=button, exact=True).first.click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file.name, file.read_bytes()


def exports_of(page: Page) -> None:
    """Open the menu of the first figure."""
    menu = page.locator("[class*=st-key-export-]").get_by_role("button", name="Export", exact=True).first
    menu.scroll_into_view_if_needed()
    menu.click()
    page.get_by_role("button", name=PAPER).wait_for()


@pytest.fixture(params=["plotly", "altair"])
def figure(request: pytest.FixtureRequest, visit: Callable[..., Page]) -> Page:
    """Open a page that begins with a Plotly or an Altair figure; the latter needs a trained checkpoint."""
    if request.param == "plotly":
        return visit(f"{request.getfixturevalue('app')}/positions?positions+view=waves", dark=True)
    return visit(f"{request.getfixturevalue('shipped')}/training", dark=True)


def test_a_figure_is_saved(figure: Page, tmp_path: Path) -> None:
    """Export for a paper, then as image, numbers and page, and open the page offline."""
    assert figure.get_by_role("button", name=PAPER).count() == 0  # the menu costs nothing until it is opened
    for_a_paper(figure, tmp_path)
    figure.keyboard.press("Escape")
    settle(figure)
    as_picture_numbers_and_page(figure, tmp_path)


def as_picture_numbers_and_page(page: Page, tmp_path: Path) -> None:
    for button, suffix, begins in (
        ("Download this figure as SVG", "svg", b"<svg"),
        ("Download this figure as PNG", "png", b"\x89PNG"),
        ("CSV", "csv", b""),
        ("HTML (works offline)", "html", b""),
    ):
        exports_of(page)
        name, content = saved(page, button, tmp_path)
        page.keyboard.press("Escape")
        settle(page)
        assert name.endswith(f".{suffix}") and content.lstrip().startswith(begins)
        if suffix != "csv":
            said = said_by(content, suffix)
            assert said["software"] == "Glassformer" and len(said["fingerprint"]) == 64 and said["title"]
            assert parse_qs(urlsplit(said["view"]).query)["checkpoint"] == [said["checkpoint"]]
            assert ("sentence" in said) == ("positions" in page.url)
        if suffix == "csv":
            table = pd.read_csv(io.BytesIO(content))
            assert len(table) > 3 and table.select_dtypes("number").notna().any().any()

    page.context.set_offline(True)
    page.goto((tmp_path / name).as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg, canvas.marks, svg.marks")


def test_a_long_answer_fits_a_column_of_the_lens(
    shipped: str, visit: Callable[..., Page], chromium: Browser, tmp_path: Path
) -> None:
    """In a narrow grid the labels would overlap, so the figure is rotated."""
    page = visit(f"{shipped}/lens?token=2", dark=True)
    exports_of(page)
    name, content = saved(page, PAPER, tmp_path)
    assert b"stroke-dasharray" not in content  # the selected column is not marked
    with opened_offline(chromium, tmp_path / name) as figure:
        boxes = figure.evaluate(
            "() => [...document.querySelectorAll('text')].filter((node) => node.textContent.trim()).map((node) => "
            "{ const {left, right, top, bottom} = node.getBoundingClientRect(); return [left, right, top, bottom] })"
        )
        width = figure.evaluate("() => document.documentElement.getBoundingClientRect().width")
        sizes = figure.evaluate(
            "() => [...document.querySelectorAll('text')].map((node) => parseFloat(getComputedStyle(node).fontSize))"
        )
    assert min(sizes) >= 6 * 96 / 72 - 0.01
    assert all(left > -1 and right < width + 1 for left, right, _, _ in boxes)
    for one, other in itertools.combinations(boxes, 2):
        across = min(one[1], other[1]) - max(one[0], other[0])
        down = min(one[3], other[3]) - max(one[2], other[2])
        assert not (across > 1 and down > 4), (one, other)


def for_a_paper(page: Page, tmp_path: Path) -> None:
    """Check the export for a paper, as SVG and PDF: shapes, and text in an embedded font."""
    exports_of(page)
    title = "Figure 4: <more> & less, a title that is too long for one line of a column of this width"
    page.get_by_role("textbox", name="Title", exact=True).fill(title)
    page.locator("select").nth(1).select_option("10")
    name, content = saved(page, PAPER, tmp_path)
    assert name.endswith("84-mm.svg")
    root = ElementTree.fromstring(content)
    assert root.get("width") == "84mm" and root.get("height").endswith("mm")
    assert float(root.get("viewBox").split()[2]) == pytest.approx(84 * 96 / 25.4, abs=1)
    said = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert title.replace(" ", "") in "".join(said).replace(" ", "").replace("\xa0", "")
    grounds = [rect.get("fill") or rect.get("style") for rect in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert any("rgb(255, 255, 255)" in ground or ground == "#FFFFFF" for ground in grounds if ground)
    drawn = content.decode().lower()
    assert "#e8ecf2" not in drawn and "rgb(232, 236, 242)" not in drawn  # text colours of the dark page

    page.keyboard.press("Escape")
    settle(page)
    exports_of(page)
    page.get_by_role("textbox", name="Title", exact=True).fill("Léa: <more> & less, −0.5 → π")
    name, content = saved(page, PDF, tmp_path)
    assert name.endswith("84-mm.pdf") and len(content) < 250_000
    width, height = pdf_page(content)
    assert width == pytest.approx(84 * 72 / 25.4, abs=0.1) and 50 < height < 600
    assert b"/FontFile2" in content and b"/Subtype /Image" not in content
    assert set("Léa:<>&−→π") <= pdf_letters(content)
    said = said_by(content, "pdf")
    assert said["title"] == "Léa: <more> & less, −0.5 → π" and said["fingerprint"]
    assert pdf_information(content)["Title"] == said["title"]


def test_a_figure_can_be_read_as_a_table(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/add_norm")
    tables = page.get_by_test_id("stDataFrame")
    before = tables.count()
    switch = page.get_by_role("switch", name="Table", exact=True).first
    switch.focus()
    page.keyboard.press("Space")
    settle(page)
    expect(tables).to_have_count(before + 1)
    expect(page.locator("[class*=st-key-table-of-]").get_by_role("button", name="CSV", exact=True)).to_be_visible()


def test_a_table_is_saved_with_full_precision(app: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(f"{app}/heads")
    name, csv = saved(page, "CSV", tmp_path)
    assert name.endswith(".csv")
    numbers = [cell for line in csv.decode().splitlines()[1:] for cell in line.split(",") if "." in cell]
    assert any(len(number.split(".")[1]) > 4 for number in numbers)
