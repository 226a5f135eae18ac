"""Documents with HTML in sentences, classes, cards and names: no script runs, no request is sent.

The typed text is shown. For images see ``test_canvas_exports.py``.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch
from playwright.sync_api import Browser, Page

import transformer
from charts.figures.decoding_figures import candidate_bars
from tests.conftest import TINY_CONFIGS
from ui.shell.focus import Focus
from ui.shell.guidance.lessons import Lesson, Step
from ui.show.exports import self_contained_html
from ui.words.texts import page_text
from views.lessons.worksheet import lesson_sheet, with_figures, worksheet
from views.lessons.worksheet_drawings import figure_of

pytestmark = pytest.mark.browser

PICTURE = '<img src="http://example.invalid/x.png" onerror="window.hacked=1">'
SENTENCE = f"</script><script>window.hacked=1</script>{PICTURE[:45]}"
TARGET = "<svg onload=window.hacked=1> [x](javascript:alert(1))"
CLASSES = (PICTURE, '"><script>window.hacked=1<\\/script>')
_TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
CARD = f"# {PICTURE}\n\n![x](http://example.invalid/y.png) [x](javascript:alert(1))\n"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: transformer.Tokenizer) -> list[Path]:
    """Return worksheets about a classifier and a translation, with their keys."""
    place = tmp_path_factory.mktemp("hostile")
    for name in ("tiny-sentiment", "tiny-translator"):
        values = dict(TINY_CONFIGS[name])
        if "class_names" in values:
            values["class_names"] = CLASSES
        config = transformer.ModelConfig(vocabulary_size=tiny_tokenizer.vocabulary_size, max_length=200, **values)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = transformer.build_model(config)
        folder = place / f"{name}<img src=x onerror=window.hacked=1>"
        transformer.save(folder, model, tiny_tokenizer, card=CARD)
        _worksheets(transformer.load(folder), place / name)
    return sorted(place.glob("*.html"))


def _worksheets(checkpoint: transformer.Checkpoint, file: Path) -> None:
    """Write the worksheet of a lesson whose texts are hostile, too."""
    target = TARGET if checkpoint.config.has_encoder and checkpoint.config.has_decoder else None
    trace = transformer.trace(checkpoint, SENTENCE, target=target)
    focus = Focus(checkpoint.name, SENTENCE, target=TARGET if target else "", stack=trace.stacks[0])
    text = page_text("lessons")
    step = Step("attention", TARGET, SENTENCE, PICTURE, *[PICTURE] * 3, "", ((TARGET, PICTURE),))
    lesson = Lesson("01-hostile", SENTENCE, TARGET, 10, (step,))
    sheet = lesson_sheet(lesson, text=text, link=lambda number: "javascript:window.hacked=1")
    sheet = with_figures(sheet, [[figure_of("attention", focus, trace, text=text)]])
    for key in (False, True):
        html = worksheet(sheet, key=key, text=text)
        file.with_name(f"{file.name}-worksheet-{key}.html").write_text(html, encoding="utf-8")


def test_nothing_of_what_was_typed_runs(documents: list[Path], chromium: Browser) -> None:
    assert len(documents) == 4
    page: Page = chromium.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for document in documents:
        page.goto(document.as_uri())
        page.evaluate(_TWO_FRAMES)  # once laid out, a figure hides or disables controls that it does not need
        for cell in page.locator("button, summary").all()[:10]:
            if cell.is_visible():
                cell.scroll_into_view_if_needed()
            page.evaluate(_TWO_FRAMES)
            if cell.is_visible() and cell.is_enabled():
                cell.click()
        assert page.evaluate("window.hacked") is None, document.name
        assert "window.hacked" in page.inner_text("body"), "it is shown as the text that it is"
        assert page.locator("a[href^='javascript'], img[src='x'], [onerror], [onload]").count() == 0
    page.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_figure_of_plotly_and_its_svg_show_markup_as_text(chromium: Browser, tmp_path: Path) -> None:
    """Plotly turns some markup into links, and an SVG opened by itself is a document that can run scripts."""
    link = '<a href="javascript:window.hacked=1" xlink:href="http://example.invalid/z" onclick="window.hacked=1">x</a>'
    texts = [
        SENTENCE,
        TARGET,
        *CLASSES,
        link,
        "<b>window.hacked</b><br>]]></text></svg><script>window.hacked=1</script>",
    ]
    rows = pd.DataFrame({"piece": texts, "probability": 1 / len(texts), "chosen": [True] + [False] * (len(texts) - 1)})
    figure = candidate_bars(rows, axis=page_text("decoding")["class_axis"], row="")
    (tmp_path / "figure.html").write_bytes(self_contained_html(figure))
    page = chromium.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "figure.html").as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg")
    svg = page.evaluate(
        "Plotly.toImage(document.querySelector('.js-plotly-plot'), {format: 'svg', imageDataOnly: true})"
    )
    for name, within in (("figure.html", ".js-plotly-plot "), ("figure.svg", "")):
        if not within:
            (tmp_path / name).write_text(svg, encoding="utf-8")
            page.goto((tmp_path / name).as_uri())
        foreign = (
            "script",
            "a[href^='javascript']",
            "a[*|href]",
            "img",
            "iframe",
            "foreignObject",
            "[onerror], [onload], [onclick]",
        )
        assert [one for one in foreign if page.locator(f"{within}{one}").count()] == [], name
        assert "javascript:window.hacked=1" in page.evaluate("document.documentElement.textContent")
        assert page.evaluate("window.hacked") is None, name
    page.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
