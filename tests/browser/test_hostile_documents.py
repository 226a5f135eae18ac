"""Sentence, answer, class names, card and folder name that are HTML, in the documents that a reader saves and opens
from disk: no script of theirs runs, no request leaves, and what was typed is shown.

Of pictures see ``test_canvas_exports.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page

import transformer
from tests.conftest import TINY_CONFIGS
from transformer.__main__ import main
from ui.shell.focus import Focus
from ui.words.texts import page_text
from views.lessons.worksheet import as_html
from views.lessons.worksheet_figure import figure_of
from views.lessons.worksheet_questions import view_sheet

pytestmark = pytest.mark.browser

PICTURE = '<img src="http://example.invalid/x.png" onerror="window.hacked=1">'
SENTENCE = f"</script><script>window.hacked=1</script>{PICTURE[:45]}"
TARGET = "<svg onload=window.hacked=1> [x](javascript:alert(1))"
CLASSES = (PICTURE, '"><script>window.hacked=1<\\/script>')
CARD = f"# {PICTURE}\n\n![x](http://example.invalid/y.png) [x](javascript:alert(1))\n"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: transformer.Tokenizer) -> list[Path]:
    """A handout and a report of a classifier, a handout of a translation; of both a worksheet and its key."""
    place = tmp_path_factory.mktemp("hostile")
    (place / "sentences.txt").write_text(f"{SENTENCE}\n{TARGET}\n", encoding="utf-8")
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
        typed = [SENTENCE, *(["--target", TARGET] if name == "tiny-translator" else [])]
        assert main(["handout", "--checkpoint", str(folder), *typed, "--out", str(place / f"{name}.html")]) == 0
        _worksheets(transformer.load(folder), place / name)
    report = ["explain", "--checkpoint", str(place / "tiny-sentiment<img src=x onerror=window.hacked=1>")]
    assert main([*report, "--sentences", str(place / "sentences.txt"), "--out", str(place / "report.html")]) == 0
    return sorted(place.glob("*.html"))


def _worksheets(checkpoint: transformer.Checkpoint, file: Path) -> None:
    """As the page Lessons makes them of a link."""
    target = TARGET if checkpoint.config.has_encoder and checkpoint.config.has_decoder else None
    trace = transformer.trace(checkpoint, SENTENCE, target=target)
    focus = Focus(checkpoint.name, SENTENCE, target=TARGET if target else "", stack=trace.stacks[0])
    text = page_text("lessons")
    sheet = view_sheet(page_text("overview"), focus, trace, text=text, link="javascript:window.hacked=1")
    figure = figure_of("attention", focus, trace, text=text)
    for key in (False, True):
        html = as_html(sheet, key=key, text=text, figure=figure)
        file.with_name(f"{file.name}-worksheet-{key}.html").write_text(html, encoding="utf-8")


def test_nothing_of_what_was_typed_runs(documents: list[Path], chromium: Browser) -> None:
    assert len(documents) == 7
    page: Page = chromium.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for document in documents:
        page.goto(document.as_uri())
        for cell in page.locator("button, summary").all()[:10]:
            if cell.is_visible():
                cell.click()
        assert page.evaluate("window.hacked") is None, document.name
        assert "window.hacked" in page.inner_text("body"), "it is shown as the text that it is"
        assert page.locator("a[href^='javascript'], img[src='x'], [onerror], [onload]").count() == 0
    page.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
