"""Long texts in a browser: the heaviest pages respond, their maps zoom and pan, with few elements.

Texts have 64 tokens in every run, 256 in nightly runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

import transformer
from tests.browser.conftest import settle
from tests.browser.scenes import painted
from tests.conftest import ROOT
from tests.harness.app_server import AppServer
from tests.long_texts import long_sentence

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SOON = 60_000  # milliseconds
SHORT, OTHER = "The cat sat on the mat.", "The dog sleeps under the table."
FOLDER = ROOT / "checkpoints"
MAX_ELEMENTS = 6000
CHOICES = "[data-testid=stMain] [role=radio], [data-testid=stMain] [role=tab]"
# One page for each kind of figure …
HEAVIEST = [
    ("positions", "By distance"),
    ("attention", ""),
    ("decoding", "Word alignment"),
    ("training", "One step in detail"),
    ("tokens", ""),
]
# … and those that use the same library.
ALIKE = [
    ("embeddings", ""),
    ("heads", "how sharp each row is"),
    ("add_norm", "What each sub-layer adds"),
    ("feed_forward", "All tokens"),
]
READ = [
    (*HEAVIEST[0], 64),
    *(pytest.param(page, view, 256, marks=pytest.mark.nightly) for page, view in (*HEAVIEST, *ALIKE)),
]


def sentence_of(n_tokens: int) -> str:
    return long_sentence(transformer.load(FOLDER / "en-fr"), n_tokens)


@pytest.fixture(scope="module")
def sentence() -> str:
    return sentence_of(256)


def type_sentence(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Sentence", exact=True)
    box.fill(text)
    box.press("Enter")
    settle(page)


@pytest.mark.parametrize(("page", "view", "n_tokens"), READ)
def test_the_tab_answers(visit: Callable[..., Page], shipped: str, page: str, view: str, n_tokens: int) -> None:
    tab = visit(f"{shipped}/{page}?{urlencode({'checkpoint': 'en-fr', 'sentence': SHORT})}")
    if view:  # its libraries have been loaded before
        tab.locator(CHOICES).get_by_text(view, exact=True).first.click()
        settle(tab)
    for text in (sentence_of(n_tokens), OTHER):  # it still responds to another sentence
        before = tab.url
        type_sentence(tab, text)
        assert tab.url != before and not tab.locator("[data-testid=stMain] [data-testid=stAlert]").count()
        assert tab.locator("[data-testid=stMain] *").count() < MAX_ELEMENTS


def test_a_click_in_the_strip_moves_the_window_of_a_text_that_is_recorded_by_layer(visit: Callable[..., Page]) -> None:
    sentence = long_sentence(transformer.load(FOLDER / "gpt-en"), 240)
    with AppServer(environment={"GLASSFORMER_RECORDING_MB": "20"}) as server:
        place = {"checkpoint": "gpt-en", "sentence": sentence, "layer": "1", "head": "1"}
        page = visit(f"{server.base}/attention?{urlencode(place)}")
        strip = page.locator(".st-key-attention-strip canvas[data-geometry]")
        expect(strip).to_be_visible(timeout=SOON)
        settle(page)
        title = page.get_by_text(re.compile(r"head 1 · 192–\d+ × \d+–\d+$"))
        chosen = int(title.inner_text().rsplit("× ", 1)[1].split("–")[0]) // 64
        other = 2 if chosen == 1 else 1
        cells, box = painted(strip)
        page.mouse.click(
            box["x"] + cells["x"] + (other + 0.5) * cells["stepX"], box["y"] + cells["y"] + 0.5 * cells["stepY"]
        )
        expect(title).to_have_text(re.compile(rf"× {64 * other}–{64 * other + 63}$"), timeout=SOON)
        expect(page).to_have_url(re.compile(rf"attention_block={other}(&|$)"), timeout=SOON)
        page.get_by_placeholder("Find a token or word").fill("a")
        page.get_by_placeholder("Find a token or word").press("Enter")
        page.locator(".st-key-found_before button").click()
        expect(title).to_have_text(re.compile(rf"× {64 * (other - 1)}–"), timeout=SOON)
