"""Sentence, answer, class names, card and folder name that are HTML, in the documents that a reader saves and opens
from disk: no script of theirs runs, no request leaves, and what was typed is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page

import transformer
from tests.conftest import TINY_CONFIGS
from transformer.__main__ import main

pytestmark = pytest.mark.browser

PICTURE = '<img src="http://example.invalid/x.png" onerror="window.hacked=1">'
SENTENCE = f"</script><script>window.hacked=1</script>{PICTURE[:45]}"
TARGET = "<svg onload=window.hacked=1> [x](javascript:alert(1))"
CLASSES = (PICTURE, '"><script>window.hacked=1<\\/script>')
CARD = f"# {PICTURE}\n\n![x](http://example.invalid/y.png) [x](javascript:alert(1))\n"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: transformer.Tokenizer) -> list[Path]:
    """A handout and a report of a classifier, a handout of a translation."""
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
    report = ["explain", "--checkpoint", str(place / "tiny-sentiment<img src=x onerror=window.hacked=1>")]
    assert main([*report, "--sentences", str(place / "sentences.txt"), "--out", str(place / "report.html")]) == 0
    return sorted(place.glob("*.html"))


def test_nothing_of_what_was_typed_runs(documents: list[Path], chromium: Browser) -> None:
    assert len(documents) == 3
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
