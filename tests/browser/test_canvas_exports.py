"""Exports of the canvas: vector graphics, an offline page, numbers, and the same figure in a notebook."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from charts import notebook
from charts.toolkit import style
from tests.browser import canvas_harness
from tests.browser.offline import opened_offline, tip_at
from tests.browser.scenes import Canvas
from tests.browser.test_canvas import SEEN
from transformer.disk.tables import harmless_cell

pytestmark = pytest.mark.browser
TITLE = "decoder self-attention, layer 0, head 1"
SVG = "{http://www.w3.org/2000/svg}"
NOT_IN_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF), "\ufffd")


def saved(canvas: Canvas, button: str, folder: Path) -> Path:
    """Return the file behind a button of the menu; nothing may be transferred for it."""
    before = len(canvas.sent)
    canvas.page.get_by_role("button", name="Export this figure").click()
    with canvas.page.expect_download() as download:
        canvas.page.get_by_role("button", name=button).click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    assert len(canvas.sent) == before
    return file


def texts(file: Path) -> list[str]:
    return [element.text for element in ElementTree.parse(file).iter(f"{SVG}text")]


def test_the_svg_has_every_cell_as_a_shape_and_every_label_as_text(show, tmp_path: Path) -> None:
    canvas = show("map")
    file = saved(canvas, "as SVG", tmp_path)
    root = ElementTree.parse(file).getroot()
    assert file.name == "decoder-self-attention-layer-1-head-2.svg"
    assert root.find(f"{SVG}title").text == "decoder self-attention, layer 1, head 2"
    assert not list(root.iter(f"{SVG}image"))
    said = texts(file)
    weights = SEEN.weights[2][SEEN.allowed]
    numbers = [f"{value:.3f}" for value in weights if value >= 0.0005]
    assert [text for text in said if text in set(numbers)] == numbers
    assert said.count("·") >= (weights < 0.0005).sum() > 0, "a number that rounds to zero is a dot"
    assert {"<s>", "<b>", "lievably", "👩🏽‍🚀"} <= set(said)
    filled = {path.get("fill") for path in root.iter(f"{SVG}path")}
    assert len(filled) > 40  # one colour per weight
    assert any(fill and fill.startswith("url(") for fill in filled)  # the hatching
    # The layout on the screen is restored.
    assert canvas.hover(*canvas.cell(7, 5)).startswith("‘·the₂’ looks at ‘·the’")


def test_what_was_clicked_is_not_marked_in_a_picture(in_the_app, tmp_path: Path) -> None:
    canvas = in_the_app("map")
    canvas.page.mouse.click(*canvas.at(*canvas.cell(7, 5)))
    canvas.says("cell (7, 5)")
    chosen = style.CHOSEN.lower()
    drawn = saved(canvas, "as SVG", tmp_path).read_text(encoding="utf-8").lower()
    assert chosen not in drawn


def test_every_head_of_every_kind_is_one_picture_to_choose_from_and_to_print(in_the_app, tmp_path: Path) -> None:
    canvas = in_the_app("overview")
    own, crossing = canvas.geometry["parts"]
    assert (len(own), len(crossing)) == (24, 8)
    x, y, width, height = crossing[5]
    tip = canvas.hover(x + width / 2, y + height / 2)
    assert tip.startswith("decoder cross-attention, layer 0, head 5") and "exactly" in tip
    canvas.page.mouse.click(*canvas.at(x + width / 2, y + height / 2))
    canvas.says("head AnyHead(stack='decoder', attention='cross', layer=0, head=5)")
    canvas.page.locator("canvas").focus()
    canvas.page.keyboard.press("ArrowRight")  # the keyboard begins at the chosen cell
    for _ in range(6):  # from the first head of a grid to the previous grid
        canvas.page.keyboard.press("ArrowLeft")
    canvas.page.keyboard.press("ArrowDown")
    canvas.page.keyboard.press("Enter")
    canvas.says("head AnyHead(stack='decoder', attention='self', layer=1, head=0)")
    file = saved(canvas, "as SVG", tmp_path)
    assert {"decoder self-attention", "decoder cross-attention", "layer 2"} <= set(texts(file))
    assert style.CHOSEN.lower() not in file.read_text(encoding="utf-8").lower()
    rows = list(csv.DictReader(io.StringIO(saved(canvas, "as CSV", tmp_path).read_text(encoding="utf-8"))))
    assert len(rows) == 24 * 15 * 15 + 8 * 3 * 15
    assert {row["attention"] for row in rows} == {"decoder self-attention", "decoder cross-attention"}


def test_a_saved_page_says_what_it_shows(in_the_app, chromium, tmp_path: Path) -> None:
    canvas = in_the_app("hostile")
    canvas.page.evaluate("view => { globalThis.glassformerView = view }", {"sentence": MARKUP})
    with opened_offline(chromium, saved(canvas, "works offline", tmp_path)) as page:
        assert page.locator("script").count() == 4
        page.locator("canvas").wait_for()
        page.wait_for_function("() => globalThis.glassformerView?.sentence")  # for the caption of its exports
        page.get_by_role("button", name="Export this figure").click()
        assert page.get_by_role("button", name="PDF").count() == 0  # the PDF writer stays on the server


def test_a_saved_picture_has_a_caption_and_no_empty_part(show, tmp_path: Path) -> None:
    canvas = show("hostile")
    view = {"checkpoint": "en-fr", "fingerprint": "2c4db36623ec", "sentence": "A dog barks.", "target": "Un chien."}
    canvas.page.evaluate("view => { globalThis.glassformerView = view }", view)
    caption = "A dog barks. → Un chien. · en-fr (2c4db36623ec) · Glassformer"
    texts = ElementTree.parse(saved(canvas, "as SVG", tmp_path)).getroot().iter(f"{SVG}text")
    assert caption in ["".join(text.itertext()) for text in texts]
    with Image.open(saved(canvas, "as PNG", tmp_path)) as file:
        pixels = np.asarray(file.convert("RGB")).astype(int)
    drawn = (np.abs(pixels - pixels[0, 0]).sum(axis=2) > 0)[:-1, :-1]
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    margin = 2 * 16
    assert drawn.shape[1] - columns[-1] <= 2 * margin and drawn.shape[0] - rows[-1] <= 2 * margin


MARKUP = (
    ']]></text></svg><script>alert(1)</script><a href="javascript:alert(1)"><image href="http://example.invalid/x"/>'
)


def test_tokens_and_sentence_that_are_markup_stay_text_in_a_saved_picture(show, chromium, tmp_path: Path) -> None:
    """An SVG opened by itself is a document in which scripts would run."""
    canvas = show("hostile")
    canvas.page.evaluate("view => { globalThis.glassformerView = view }", {"sentence": MARKUP, "target": MARKUP})
    with opened_offline(chromium, saved(canvas, "as SVG", tmp_path)) as page:
        assert page.locator("script, a, image, img, iframe, foreignObject, [onload], [onerror]").count() == 0
        said = page.evaluate("document.documentElement.textContent")
    assert [token for token in canvas_harness.HOSTILE if token[:8] not in said] == []  # long texts are shortened
    assert MARKUP[:20] in said.replace("\u00a0", " ")


def test_the_csv_has_every_weight_exactly(show, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(saved(show("hostile"), "as CSV", tmp_path).read_text(encoding="utf-8"))))
    hostile = canvas_harness.view(
        canvas_harness.HOSTILE, canvas_harness.HOSTILE, layer=0, n_heads=2, kind="self", causal=True
    )
    assert len(rows) == len(canvas_harness.HOSTILE) ** 2
    for row in rows:
        query, key = int(row["row"]), int(row["column"])
        labels = hostile.query.labels[query], hostile.key.labels[key]
        assert (row["row_label"], row["column_label"]) == tuple(map(harmless_cell, labels))  # one token is "=1+1"
        if hostile.allowed[query, key]:
            assert np.float32(row["value"]) == hostile.weights[1][query, key]
        else:
            assert row["value"] == ""


def test_a_spreadsheet_runs_no_token_of_a_map(show, tmp_path: Path) -> None:
    file = saved(show("formulas"), "as CSV", tmp_path)
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"), newline="")))
    labels = [row["row_label"] for row in rows[:: len(canvas_harness.FORMULAS)]]
    assert labels == [row["column_label"] for row in rows[: len(labels)]]
    assert labels == ["'=1+1", "'+1+1", "'-2+3", "'@SUM(A1:A9)", "'\t=1", "-0.5", "-", "·the"]


def test_the_csv_of_signed_numbers_can_be_read_by_a_machine(show, tmp_path: Path) -> None:
    """Its minus is the hyphen that programs read, not the minus sign of the figure."""
    rows = csv.DictReader(io.StringIO(saved(show("scores"), "as CSV", tmp_path).read_text(encoding="utf-8")))
    assert any(float(row["value"]) < 0 for row in rows if row["value"])


@pytest.mark.parametrize("dark", [False, True])
def test_the_saved_page_works_offline_and_its_tokens_stay_text(show, chromium, tmp_path: Path, dark: bool) -> None:
    canvas = show("hostile")
    shown = canvas.hover(*canvas.cell(2, 1))
    file = saved(canvas, "works offline", tmp_path)
    for token in canvas_harness.HOSTILE[1:3]:
        assert token not in file.read_text(encoding="utf-8")
    with opened_offline(chromium, file, dark=dark) as page:
        assert tip_at(page, (), 2, 1) == shown
        assert "‘<!--’ looks at ‘</script><script>alert(1)</script>’" in shown
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(18, 22, 29)") == dark
        assert page.locator("script").count() == 4  # payload, packed script, loader, script; no script was injected
        page.get_by_role("button", name="Show the numbers as a table").click()
        assert page.locator("thead th").nth(2).inner_text() == "<!--"


def test_the_saved_page_zooms_and_switches_heads(show, chromium, tmp_path: Path) -> None:
    canvas = show("lines")
    canvas.page.get_by_role("button", name="head 7", exact=True).click()
    with opened_offline(chromium, saved(canvas, "works offline", tmp_path)) as page:
        page.locator("canvas[data-geometry]").wait_for()
        assert page.locator(".chip[aria-pressed=true]").all_inner_texts() == ["0", "2", "5", "7"]
        page.get_by_role("button", name="head 0", exact=True).click()
        assert page.locator(".chip[aria-pressed=true]").all_inner_texts() == ["2", "5", "7"]
    with opened_offline(chromium, saved(show("large"), "works offline", tmp_path)) as page:
        before = tip_at(page, (), 10, 5)
        page.get_by_role("button", name="Zoom in").click()
        page.get_by_role("button", name="Zoom in").click()
        page.get_by_role("button", name="Show the whole map").click()
        assert tip_at(page, (), 10, 5) == before


def test_a_mask_can_be_painted_on_in_the_saved_page(show, chromium, tmp_path: Path) -> None:
    with opened_offline(chromium, saved(show("mask"), "works offline", tmp_path)) as page:
        assert "cannot be attended to" not in tip_at(page, (), 10, 5)
        page.mouse.down()
        page.mouse.up()
        tip_at(page, (), 9, 5)
        assert "cannot be attended to" in tip_at(page, (), 10, 5)


# ---- in a notebook --------------------------------------------------------------------------------------------------


def in_a_notebook(folder: Path, *outputs: str) -> Path:
    file = folder / "notebook.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{''.join(outputs)}", encoding="utf-8")
    return file


def test_a_view_draws_itself_in_a_notebook(chromium: Browser, tmp_path: Path) -> None:
    file = in_a_notebook(tmp_path, SEEN._repr_html_())
    with opened_offline(chromium, file) as page:
        assert page.locator("iframe").get_attribute("sandbox") == "allow-scripts allow-downloads"
        frame = page.frames[1]
        tip = tip_at(frame, ("large", 0), 7, 5)
        assert "head 0" in tip and "‘·the₂’ looks at ‘·the’" in tip
        tiles = frame.evaluate(
            "JSON.parse(document.querySelector('main').shadowRoot.querySelector('canvas').dataset.geometry).parts[0]"
        )
        assert len(tiles) == 8
        assert len({top for _, top, _, _ in tiles}) == 3  # the maps are in up to three rows of three
        x, y, width, height = tiles[2]
        frame.locator("canvas").click(position={"x": x + width / 2, "y": y + height / 2})
        page.mouse.move(1, 1)
        assert "head 2" in tip_at(frame, ("large", 0), 7, 5)  # the click kept the map open


def test_the_functions_for_a_notebook(chromium: Browser, tmp_path: Path) -> None:
    figures = [
        notebook.attention_map(SEEN, head=2),
        notebook.attention_lines(SEEN, heads=[2]),
        notebook.attention_grid([SEEN]),
    ]
    file = in_a_notebook(tmp_path, *(figure._repr_html_() for figure in figures))
    with opened_offline(chromium, file) as page:
        first = page.frames[1]
        assert f"‘·the₂’ looks at ‘·the’: {SEEN.weights[2][7, 5]:.3g}" in tip_at(first, (), 7, 5)
        for frame, figure in zip(page.frames[1:], figures, strict=True):
            page.locator("iframe").nth(figures.index(figure)).scroll_into_view_if_needed()
            frame.locator("canvas[data-geometry]").wait_for()
            long, room = frame.evaluate("[document.documentElement.scrollHeight, innerHeight]")
            assert long <= room + 1, f"{figure} needs {long} pixels and has {room}"
    with opened_offline(chromium, figures[0].save(tmp_path / "map.html")) as page:
        assert "‘·the₂’ looks at ‘·the’" in tip_at(page, (), 7, 5)
