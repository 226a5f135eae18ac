"""How much there is at once on a first view: controls on the screen, and words in the main area."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import open_page, settle
from ui.words.texts import ROOT as TEXTS
from ui.words.translations import read_texts

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SENTENCE = "My grandmother bakes apple pie every Sunday."
MOST_CONTROLS, MOST_WORDS = 20, 120
# Pages on which the sidebar and every word counts.
FIRST = ("overview", "attention", "decoding", "tokens")
# Pages that show one picture and its sentence first, the rest below or behind "More": controls of the main area, and
# words outside of controls, formulas and titles.
SPARE = ("add_norm", "feed_forward", "heads", "masks", "surgery", "embeddings", "checkpoint", "positions")
# What can be operated, in main area and sidebar: the options of one choice are one control, and so are the tokens of a
# sentence, i.e. controls of one kind beside each other. `text` counts the words outside of controls.
_COUNT = """() => {
  const onScreen = (node) => {
    const box = node.getBoundingClientRect();
    return node.checkVisibility({opacityProperty: true, visibilityProperty: true}) && box.width > 1 && box.height > 1
      && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  };
  const all = (root) => [...root.querySelectorAll("*")].flatMap((node) =>
    [node, ...(node.shadowRoot ? all(node.shadowRoot) : [])]);
  const operable = "button, a[href], input, textarea, select, summary, [role=tab], [role=slider], [role=combobox]";
  const [main, side] = ["stMain", "stSidebar"].map((id) => document.querySelector(`[data-testid=${id}]`));
  const isArrow = (node) => node.matches("[data-testid=stSelectbox] button"); // of a list, which is one control
  const found = [main, side].filter(Boolean).flatMap(all)
    .filter((node) => node.matches(operable) && !isArrow(node) && onScreen(node));
  const controls = found.filter((node) => !found.some((other) => other !== node && other.contains(node)));
  const groups = new Set(controls.map((node) => {
    const group = node.closest("[role=radiogroup], [role=tablist], [data-testid=stButtonGroup]");
    if (group) return group;
    const alike = [...(node.parentElement?.children ?? [])].filter((one) => one.classList[0] === node.classList[0]);
    return alike.length > 3 ? node.parentElement : node;
  }));
  const words = (root, without = "style, script") => [...root.childNodes].reduce((sum, node) => {
    if (node.nodeType === Node.ELEMENT_NODE)
      return sum + (node.matches(without) ? 0 : words(node.shadowRoot ?? node, without));
    if (node.nodeType !== Node.TEXT_NODE || !node.parentElement || !onScreen(node.parentElement)) return sum;
    return sum + (node.textContent.match(/[\\p{L}]{2,}/gu) ?? []).length;
  }, 0);
  return {
    controls: groups.size, inMain: controls.filter((node) => main.contains(node)).length,
    words: words(main), text: words(main, "style, script, button, summary, svg, h1, .katex"),
  };
}"""


def first_view(page: Page) -> dict[str, int]:
    """Count once the page is quiet, since figures may appear late."""
    settle(page)
    found = page.evaluate(_COUNT)
    for _ in range(60):
        page.wait_for_timeout(200)
        if found == (found := page.evaluate(_COUNT)):
            break
    return found


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_first_view_has_few_controls_and_words(shipped: str, visit: Callable[..., Page], language: str) -> None:
    page = visit(f"{shipped}/?language={language}", width=1280, height=720)
    for name in FIRST:
        open_page(page, read_texts(TEXTS, name, language)["title"])
        found = first_view(page)
        assert 10 < found["controls"] <= MOST_CONTROLS and 30 < found["words"] <= MOST_WORDS, (name, found)


def test_a_page_with_one_picture_has_few_controls_and_words(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/?checkpoint=en-fr&sentence={SENTENCE}", width=1280, height=720)
    crowded = {}
    for name in SPARE:
        open_page(page, read_texts(TEXTS, name, "en")["title"])
        found = first_view(page)
        assert found["inMain"] > 3 and found["text"] > 5, (name, found)
        if found["inMain"] > MOST_CONTROLS or found["text"] > MOST_WORDS:
            crowded[name] = found
    assert not crowded
