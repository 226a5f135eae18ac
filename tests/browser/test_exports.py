"""Downloads of one figure per kind and of a table; hostile texts stay text in each of them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

import transformer
from charts.canvas.attention_maps import attention_map
from charts.figures.bars import Bars, bars
from charts.toolkit.axes import Axis
from charts.toolkit.style import CHOSEN
from tests.browser.axe import findings
from tests.browser.conftest import PHONE, key, settle
from tests.browser.drawing import Drawing
from tests.browser.offline import opened_offline, pdf_letters, pdf_page, pdf_streams
from tests.conftest import TINY_CONFIGS
from tests.drawings.record import view
from transformer.disk.tables import harmless_cell
from ui.page.page import Page as AppPage
from ui.shell.focus import Focus
from ui.shell.guidance.lessons import Lesson, Step
from ui.show.exports import self_contained_html
from ui.words.texts import page_text
from views.lessons.worksheet import worksheet
from views.lessons.worksheet_drawings import figure_of

pytestmark = pytest.mark.browser
PAPER = 718  # pixels across A4 without its margins
SVG = "{http://www.w3.org/2000/svg}"
# Tokens that try to escape from the script, the attribute, the template or the cell that contains them.
HOSTILE = [
    *(
        "<s>",
        "</script><script>window.hacked=1</script>",
        "<!--",
        "{{script}}",
        "\"'&lt;",
        "]]>",
        "=1+1",
        "a,b",
        "-0.5",
    ),
    *("</svg><script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>", "javascript:window.hacked=1"),
]
PICTURE = '<img src="http://example.invalid/x.png" onerror="window.hacked=1">'
LINK = '<a href="javascript:window.hacked=1" xlink:href="http://example.invalid/z" onclick="window.hacked=1">x</a>'
MARKUP = f"]]></text></svg><script>window.hacked=1</script>{LINK}{PICTURE}"
SENTENCE = "</script><img src=x onerror=window.hacked=1>"  # a longer one makes tables that take axe seconds
TARGET = "<svg onload=window.hacked=1> [x](javascript:alert(1))"


def saved(page: Page, button: Locator, folder: Path) -> Path:
    with page.expect_download(timeout=60_000) as waiting:
        button.click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file


def test_a_map_of_hostile_tokens_is_saved_in_every_form(
    visit: Callable[..., Page], chromium: Browser, tmp_path: Path
) -> None:
    seen = view(HOSTILE, HOSTILE, layer=0, n_heads=2, kind="self", causal=True)
    page = visit(attention_map(seen, head=1, selected=(2, 1)).save(tmp_path / "map.html").as_uri())
    about = {"checkpoint": "en-fr", "fingerprint": "2c4db36623ec", "sentence": MARKUP, "target": "Un chien."}
    page.evaluate("view => { globalThis.glassformerView = view }", about)
    drawing = Drawing(page)
    shown = drawing.hover(drawing.cell(2, 1))
    assert HOSTILE[1] in shown
    table = page.get_by_role("button", name="Show the numbers as a table")
    table.click()
    expect(page.locator("thead th").nth(2)).to_have_text(HOSTILE[2])
    table.click()

    def export(form: str) -> Path:
        page.get_by_role("button", name="Export this figure").click()
        return saved(page, page.get_by_role("button", name=form, exact=False).last, tmp_path)

    svg = export("as SVG")
    assert CHOSEN.lower() not in svg.read_text(encoding="utf-8").lower(), "what was clicked is not marked"
    assert not list(ElementTree.parse(svg).getroot().iter(f"{SVG}image"))
    with opened_offline(chromium, svg) as picture:  # by itself, it is a document in which scripts would run
        said = picture.evaluate("document.documentElement.textContent").replace("\u00a0", " ")
        assert picture.locator("script, a, image, img, iframe, foreignObject").count() == 0
    assert [token for token in HOSTILE if token[:8] not in said] == []  # long texts are shortened
    assert MARKUP[:12] in said and "en-fr (2c4db36623ec)" in said

    with Image.open(export("as PNG")) as file:
        pixels = np.asarray(file.convert("RGB")).astype(int)
    assert pixels.shape[1] > 2 * len(HOSTILE) * drawing.state["stepX"], "at twice its size"
    drawn = (np.abs(pixels - pixels[0, 0]).sum(axis=2) > 0)[:-1, :-1]
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    assert drawn.shape[1] - columns[-1] <= 64 and drawn.shape[0] - rows[-1] <= 64, "no empty part"

    lines = list(csv.DictReader(io.StringIO(export("as CSV").read_text(encoding="utf-8"), newline="")))
    assert len(lines) == len(HOSTILE) ** 2
    for line in lines:
        query, column = int(line["row"]), int(line["column"])
        labels = seen.query.labels[query], seen.key.labels[column]
        assert (line["row_label"], line["column_label"]) == tuple(map(harmless_cell, labels))
        exact = np.float32(line["value"]) if line["value"] else None
        assert exact == (seen.weights[1][query, column] if seen.allowed[query, column] else None)

    for dark in (False, True):
        with opened_offline(chromium, export("works offline"), dark=dark) as again:
            offline = Drawing(again)
            assert offline.hover(offline.cell(2, 1)) == shown
            ground = again.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(18, 22, 29)") == dark
            assert again.locator("script").count() == 4  # payload, packed script, loader, script
            again.wait_for_function("() => globalThis.glassformerView?.sentence")  # for the caption of its exports


def test_a_map_of_the_app_is_saved_as_pdf_black_on_white(visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit("attention?sentence=The+dog+sleeps.", dark=True)
    page.get_by_role("button", name="Tools for this figure").first.click()
    page.get_by_role("button", name="Export this figure or its numbers").first.click()
    content = saved(page, page.get_by_role("button", name="Download this figure as PDF").first, tmp_path).read_bytes()
    width, height = pdf_page(content)
    assert len(content) < 250_000 and 200 < width < 1500 and 100 < height < 1500
    assert b"/FontFile2" in content and set("dogsleeps.") <= pdf_letters(content)
    colours = re.findall(rb"^([\d.]+ (?:[\d.]+ [\d.]+ )?)(?:g|rg)$", b"\n".join(pdf_streams(content)), re.MULTILINE)
    drawn = [[float(number) for number in colour.split()] for colour in colours]
    assert [colour for colour in drawn if min(colour) == 1], "the ground is white"
    assert [0.91, 0.93, 0.95] not in drawn, "no letter has the colour of the dark page"


@pytest.mark.sample
@pytest.mark.parametrize(
    ("address", "forms"),
    [("positions?positions+view=waves", ("csv", "html")), ("training", ("svg", "png", "csv", "html"))],
)
def test_a_figure_of_plotly_and_one_of_altair(
    visit: Callable[..., Page], chromium: Browser, tmp_path: Path, address: str, forms: tuple[str, ...]
) -> None:
    page = visit(address, dark=True)
    begins = {"svg": b"<svg", "png": b"\x89PNG"}
    assert page.locator("[class*=st-key-export-]").count() == 0, "the menu costs nothing until it is opened"
    for form in forms:
        menu = page.locator("[class*=st-key-more-of-] button").first
        menu.scroll_into_view_if_needed()
        menu.click()
        file = saved(page, page.locator(f"[class*=st-key-export-{form}-] button").first, tmp_path)
        page.keyboard.press("Escape")
        settle(page)
        assert file.suffix == f".{form}" and file.read_bytes().lstrip().startswith(begins.get(form, b""))
        if form == "csv":
            table = pd.read_csv(file)
            assert len(table) > 3 and table.select_dtypes("number").notna().any().any()
    with opened_offline(chromium, file) as offline:
        offline.wait_for_selector(".js-plotly-plot .main-svg, canvas.marks, svg.marks")


def test_a_figure_is_read_as_a_table_and_a_table_is_saved(visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit("add_norm")
    tables = page.get_by_test_id("stDataFrame")
    before = tables.count()
    page.locator("[class*=st-key-more-of-] button").first.click()
    switch = page.locator("[class*=st-key-as-table-]").get_by_role("switch").first
    switch.focus()
    page.keyboard.press("Space")
    settle(page)
    expect(tables).to_have_count(before + 1)
    file = saved(page, page.locator("[class*=st-key-csv-] button").first, tmp_path)
    cells = [cell for line in file.read_text().splitlines()[1:] for cell in line.split(",") if "." in cell]
    assert any(len(number.split(".")[1]) > 4 for number in cells), "with full precision"


def test_plotly_shows_markup_as_text_in_its_page_and_its_svg(chromium: Browser, tmp_path: Path) -> None:
    """Plotly turns some markup into links, and an SVG opened by itself is a document that can run scripts."""
    texts = [SENTENCE, TARGET, PICTURE, LINK, MARKUP, "<b>window.hacked</b>"]
    figure = bars(Bars([1 / len(texts)] * len(texts)), rows=Axis("", texts), across=page_text("decoding")["class_axis"])
    whole, picture = tmp_path / "figure.html", tmp_path / "figure.svg"
    whole.write_bytes(self_contained_html(figure))
    with opened_offline(chromium, whole) as page:
        page.wait_for_selector(".js-plotly-plot .main-svg")
        camera = "Plotly.toImage(document.querySelector('.js-plotly-plot'), {format: 'svg', imageDataOnly: true})"
        picture.write_text(page.evaluate(camera), encoding="utf-8")
        assert page.locator(".js-plotly-plot").locator("script, img, iframe").count() == 0
    with opened_offline(chromium, picture) as page:
        assert page.locator("script, img, iframe, foreignObject").count() == 0
        assert "javascript:window.hacked=1" in page.evaluate("document.documentElement.textContent")


@pytest.fixture(scope="module")
def worksheets(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: transformer.Tokenizer) -> list[Path]:
    """A worksheet about a classifier and the key of one about a translation; every text is hostile."""
    place, p = tmp_path_factory.mktemp("hostile"), AppPage("lessons", Focus())
    for name in ("tiny-sentiment", "tiny-translator"):
        values = {**TINY_CONFIGS[name], **({"class_names": (PICTURE, MARKUP)} if name == "tiny-sentiment" else {})}
        config = transformer.ModelConfig(vocabulary_size=tiny_tokenizer.vocabulary_size, max_length=200, **values)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = transformer.build_model(config)
        folder = place / f"{name}<img src=x onerror=window.hacked=1>"
        transformer.save(folder, model, tiny_tokenizer, card=f"# {PICTURE}\n\n![x](http://example.invalid/y.png)\n")
        checkpoint, target = transformer.load(folder), TARGET if name == "tiny-translator" else None
        trace = transformer.trace(checkpoint, SENTENCE, target=target)
        focus = Focus(checkpoint.name, SENTENCE, target=target or "", stack=trace.stacks[0])
        step = Step("attention", TARGET, SENTENCE, PICTURE, *[PICTURE] * 3, "", ((TARGET, PICTURE),))
        lesson = Lesson("01-hostile", SENTENCE, TARGET, 10, (step,))
        figures = [[figure_of(p, "attention", focus, trace)]]
        html = worksheet(p, lesson, key=target is not None, link=lambda number: HOSTILE[-1], figures=figures)
        (place / f"{name}.html").write_text(html, encoding="utf-8")
    return sorted(place.glob("*.html"))


def test_a_worksheet_runs_nothing_is_accessible_and_black_on_white(chromium: Browser, worksheets: list[Path]) -> None:
    assert len(worksheets) == 2
    for number, document in enumerate(worksheets):
        with opened_offline(chromium, document, dark=number % 2 == 0) as page:
            page.locator("canvas[data-geometry]").first.wait_for()
            for control in page.locator("button, summary").all()[:5]:
                if control.is_visible() and control.is_enabled():
                    control.click()
            page.keyboard.press("Escape")
            assert "window.hacked" in page.inner_text("body"), "it is shown as the text that it is"
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
            assert findings(page) == []
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_the_app_on_paper_has_no_sidebar_and_neither_formula_nor_figure_is_cut(visit: Callable[..., Page]) -> None:
    page = visit("attention?layer=1&head=1")
    formulas, main = page.locator(".katex-display"), page.get_by_test_id("stMainBlockContainer")
    expect(formulas.first).to_be_attached()
    settle(page)
    width = main.evaluate("one => one.firstElementChild.clientWidth")  # that of a figure, which is not drawn anew
    page.emulate_media(media="print")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    assert width * float(main.evaluate("one => getComputedStyle(one).zoom")) <= PAPER
    page.set_viewport_size({"width": PAPER, "height": 1000})
    cut = "every => every.filter((one) => one.scrollWidth > one.clientWidth + 2).map((one) => one.textContent)"
    settle(page)
    assert formulas.evaluate_all(cut) == []
    page.emulate_media(media="screen")
    assert key(page, "sentence-row").count() == 1
