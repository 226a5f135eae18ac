"""What a figure and a table give away for a handout: pictures, a page that works offline, and numbers."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from playwright.sync_api import Page

from tests.browser.conftest import settle

pytestmark = pytest.mark.browser


PAPER = "Save for a paper: shapes and black letters on white, as wide as a printed column"


def saved(page: Page, button: str, folder: Path) -> tuple[str, bytes]:
    with page.expect_download(timeout=60_000) as waiting:
        page.get_by_role("button", name=button, exact=True).first.click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file.name, file.read_bytes()


def exports_of(page: Page) -> None:
    """Opens the menu of the first figure."""
    menu = page.locator("[class*=st-key-export-]").get_by_role("button", name="Export", exact=True).first
    menu.scroll_into_view_if_needed()
    menu.click()
    page.get_by_role("button", name=PAPER).wait_for()


@pytest.fixture(params=["plotly", "altair"])
def figure(request: pytest.FixtureRequest, visit: Callable[..., Page]) -> Page:
    """A page that begins with a figure of Plotly or of Altair; the latter needs a checkpoint that was trained."""
    if request.param == "plotly":
        return visit(f"{request.getfixturevalue('app')}/add_norm", dark=True)
    return visit(f"{request.getfixturevalue('shipped')}/training", dark=True)


def test_a_figure_is_saved_as_picture_page_and_numbers(figure: Page, tmp_path: Path) -> None:
    page = figure
    assert page.get_by_role("button", name=PAPER).count() == 0  # the menu costs nothing until it is opened
    for button, suffix, begins in (
        ("Download this picture as SVG", "svg", b"<svg"),
        ("Download this picture as PNG", "png", b"\x89PNG"),
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


def test_a_figure_for_a_paper(figure: Page, tmp_path: Path) -> None:
    page = figure
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
    assert "#e8ecf2" not in drawn and "rgb(232, 236, 242)" not in drawn  # the letters of the dark page


def test_a_figure_can_be_read_as_a_table(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/add_norm")
    tables = page.get_by_test_id("stDataFrame").count()
    switch = page.get_by_role("switch", name="Table", exact=True).first
    switch.focus()
    page.keyboard.press("Space")
    settle(page)
    assert page.get_by_test_id("stDataFrame").count() == tables + 1
    assert page.locator("[class*=st-key-table-of-]").get_by_role("button", name="CSV", exact=True).is_visible()


def test_a_table_is_saved_with_full_precision(app: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(f"{app}/heads")
    name, csv = saved(page, "CSV", tmp_path)
    assert name.endswith(".csv")
    numbers = [cell for line in csv.decode().splitlines()[1:] for cell in line.split(",") if "." in cell]
    assert any(len(number.split(".")[1]) > 4 for number in numbers)
