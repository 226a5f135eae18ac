"""Exports of figures and tables: images, an offline page, and numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import settle
from tests.browser.figure_files import pdf_letters, pdf_page, pdf_streams

pytestmark = pytest.mark.browser


def saved(page: Page, button: str, folder: Path) -> tuple[str, bytes]:
    with page.expect_download(timeout=60_000) as waiting:
        page.get_by_role("button", name=button, exact=True).first.click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file.name, file.read_bytes()


def more_of(page: Page) -> None:
    """Open what is behind "…" of the first figure."""
    menu = page.locator("[class*=st-key-more-of-] button").first
    menu.scroll_into_view_if_needed()
    menu.click()


def exports_of(page: Page) -> None:
    """Open the menu of the first figure."""
    more_of(page)
    page.get_by_role("button", name="CSV", exact=True).first.wait_for()


@pytest.fixture(params=["plotly", "altair"])
def figure(request: pytest.FixtureRequest, visit: Callable[..., Page]) -> Page:
    """Open a page that begins with a Plotly or an Altair figure; the latter needs a trained checkpoint."""
    if request.param == "plotly":
        return visit(f"{request.getfixturevalue('app')}/positions?positions+view=waves", dark=True)
    return visit(f"{request.getfixturevalue('shipped')}/training", dark=True)


def test_a_figure_is_saved(figure: Page, tmp_path: Path) -> None:
    """Save it as image, numbers and page, and open the page offline."""
    page = figure
    assert page.get_by_role("button", name="HTML (works offline)").count() == 0  # the menu costs nothing until opened
    plotly = "positions" in page.url
    for button, suffix, begins in (
        *([] if plotly else [("SVG", "svg", b"<svg"), ("PNG", "png", b"\x89PNG")]),
        ("CSV", "csv", b""),
        ("HTML (works offline)", "html", b""),
    ):
        exports_of(page)
        name, content = saved(page, button, tmp_path)
        page.keyboard.press("Escape")
        settle(page)
        assert name.endswith(f".{suffix}") and content.lstrip().startswith(begins)
        if suffix == "csv":
            table = pd.read_csv(io.BytesIO(content))
            assert len(table) > 3 and table.select_dtypes("number").notna().any().any()

    page.context.set_offline(True)
    page.goto((tmp_path / name).as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg, canvas.marks, svg.marks")


def test_a_map_is_saved_as_pdf_black_on_white(app: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(f"{app}/attention?sentence=The+dog+sleeps.", dark=True)
    page.get_by_role("button", name="Tools for this figure").first.click()
    page.get_by_role("button", name="Export this figure or its numbers").first.click()
    name, content = saved(page, "Download this figure as PDF", tmp_path)
    assert name.endswith(".pdf") and len(content) < 250_000
    width, height = pdf_page(content)
    assert 200 < width < 1500 and 100 < height < 1500
    assert b"/FontFile2" in content and set("dogsleeps.") <= pdf_letters(content)
    colours = re.findall(rb"^([\d.]+ (?:[\d.]+ [\d.]+ )?)(?:g|rg)$", b"\n".join(pdf_streams(content)), re.MULTILINE)
    drawn = [[float(number) for number in colour.split()] for colour in colours]
    assert [colour for colour in drawn if min(colour) == 1], "the ground is white"
    assert [0.91, 0.93, 0.95] not in drawn, "no letter has the colour of the dark page"


def test_a_figure_can_be_read_as_a_table(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/add_norm")
    tables = page.get_by_test_id("stDataFrame")
    before = tables.count()
    more_of(page)
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
