"""How much there is at once on a first view: controls on the screen, and words in the main area."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MOST_CONTROLS, MOST_WORDS = 30, 120
# What can be operated, in main area and sidebar. The options of one choice are one control, and so are the tokens of a
# sentence: controls of one kind beside each other.
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
  const found = [main, side].filter(Boolean).flatMap(all).filter((node) => node.matches(operable) && onScreen(node));
  const controls = found.filter((node) => !found.some((other) => other !== node && other.contains(node)));
  const groups = new Set(controls.map((node) => {
    const group = node.closest("[role=radiogroup], [role=tablist], [data-testid=stButtonGroup]");
    if (group) return group;
    const alike = [...(node.parentElement?.children ?? [])].filter((one) => one.classList[0] === node.classList[0]);
    return alike.length > 3 ? node.parentElement : node;
  }));
  const words = (root) => [...root.childNodes].reduce((sum, node) => {
    if (node.nodeType === Node.ELEMENT_NODE)
      return sum + (["STYLE", "SCRIPT"].includes(node.tagName) ? 0 : words(node.shadowRoot ?? node));
    if (node.nodeType !== Node.TEXT_NODE || !node.parentElement || !onScreen(node.parentElement)) return sum;
    return sum + (node.textContent.match(/[\\p{L}]{2,}/gu) ?? []).length;
  }, 0);
  return {controls: groups.size, each: controls.length, words: words(main)};
}"""


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("path", ["", "attention", "decoding", "tokens"])
def test_a_first_view_has_few_controls_and_words(
    shipped: str, visit: Callable[..., Page], path: str, language: str
) -> None:
    page = visit(f"{shipped}/{path}?language={language}", width=1280, height=720)
    page.wait_for_timeout(500)
    found = page.evaluate(_COUNT)
    assert 10 < found["controls"] <= MOST_CONTROLS and 30 < found["words"] <= MOST_WORDS, found
    if path == "attention":
        rows = page.locator(".st-key-choose-kind button").evaluate_all(
            "nodes => new Set(nodes.map((node) => Math.round(node.getBoundingClientRect().top))).size"
        )
        assert rows == 1, "the kinds of attention stand in one row"


def test_the_two_maps_of_training_stand_at_the_same_height_in_french(shipped: str, visit: Callable[..., Page]) -> None:
    """A title that wraps beside its buttons would move one of the maps."""
    page = visit(f"{shipped}/training?language=fr&sentence=My grandmother bakes apple pie every Sunday.", width=1280)
    maps = page.locator("[class*=st-key-training-map] canvas[data-geometry]").filter(visible=True)
    expect(maps).to_have_count(2)
    tops = maps.evaluate_all("all => all.map((one) => one.getBoundingClientRect().top)")
    assert abs(tops[0] - tops[1]) < 2, tops
