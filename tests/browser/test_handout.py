"""The handout as a file, on a phone, offline, with the keyboard alone, for a hostile sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import transformer
from tests.browser.offline import opened_offline
from ui.shell.focus import Focus
from ui.words.texts import page_text
from views.overview.handout import STEPS, handout
from views.overview.handout.writing import written

pytestmark = pytest.mark.browser
SENTENCE = "</script> <pad> 😀 في"


def test_a_phone_reads_it_from_disk(chromium: Browser, tiny_checkpoint: Callable, tmp_path: Path) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, "Le chat dort.")
    file = tmp_path / "handout.html"
    file.write_text(handout(trace, Focus(sentence=SENTENCE)), encoding="utf-8")
    with opened_offline(chromium, file) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        canvases = page.locator("section canvas")
        canvases.last.and_(page.locator("[data-geometry]")).wait_for()  # the figures are drawn one after the other
        assert page.locator("h1").inner_text() == page_text("overview")["handout"]["title"].format(sentence=SENTENCE)
        assert page.evaluate("document.documentElement.scrollWidth") == 390  # nothing may move
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"

        # With the keyboard: follow a link to a step, go to the softmax step, into its map, to a cell, and open it.
        page.locator("nav a").nth(len(STEPS) - 5).focus()
        page.keyboard.press("Enter")
        assert page.url.endswith("#attention")
        page.locator("#attention input").first.focus()
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        softmax = page.locator("#attention .view").nth(4)
        expect(softmax).to_be_visible()
        softmax.locator("canvas").and_(page.locator("[data-geometry]")).wait_for()
        softmax.locator("canvas").focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        weight = trace.attention("encoder", 0).weights[0, 1, 1]
        expect(softmax.locator("output")).to_contain_text(written(float(weight))[:6])

        # Forward and back through the text.
        steps = page.locator("#decoding figure").last
        count = steps.locator(".count")
        before = count.inner_text()
        steps.locator(".lead button").last.click()
        expect(count).not_to_have_text(before)
        steps.locator(".lead button").first.click()
        expect(count).to_have_text(before)

        # A block of the diagram links to its step.
        page.locator("#diagram button.block").first.click()
        assert page.url.endswith("#tokens")
        assert page.evaluate("document.documentElement.scrollWidth") == 390

        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
