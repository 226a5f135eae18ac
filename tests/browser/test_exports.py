"""What a figure and a table give away for a handout: pictures, a page that works offline, and numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def saved(page: Page, button: str, folder: Path) -> tuple[str, bytes]:
    with page.expect_download(timeout=60_000) as waiting:
        page.get_by_role("button", name=button, exact=True).first.click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file.name, file.read_bytes()


def test_a_figure_is_saved_as_svg_png_and_offline_page(app: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(f"{app}/add_norm")
    export = page.get_by_role("button", name="Export").first
    export.click()
    name, svg = saved(page, "SVG", tmp_path)
    assert name.endswith(".svg")
    assert svg.lstrip().startswith(b"<svg")
    export.click()  # Plotly's download closed the popover
    name, png = saved(page, "PNG", tmp_path)
    assert name.endswith(".png")
    assert png.startswith(b"\x89PNG")
    export.click()
    name, _ = saved(page, "HTML (works offline)", tmp_path)
    assert name.endswith(".html")

    page.context.set_offline(True)
    page.goto((tmp_path / name).as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg")


def test_a_table_is_saved_with_full_precision(app: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(f"{app}/heads")
    name, csv = saved(page, "CSV", tmp_path)
    assert name.endswith(".csv")
    numbers = [cell for line in csv.decode().splitlines()[1:] for cell in line.split(",") if "." in cell]
    assert any(len(number.split(".")[1]) > 4 for number in numbers)
