"""Visible share of a page's main figure without scrolling."""

from playwright.sync_api import Page

PATIENCE = 120_000  # milliseconds; a busy machine may be slow
TWENTY = "The old man who lives near the river told us a long story about his brother yesterday."
# For the first figure in the page, including shadow roots: the share of its height in the window.
_SHARE = """() => {
  const large = (node) => {
    const box = node.getBoundingClientRect();
    return node.checkVisibility() && box.width > 250 && box.height > 110;
  };
  const figures = [];
  const walk = (node) => {
    if (node.matches?.("canvas, .js-plotly-plot, svg.marks, .diagram, .chips") && large(node)) figures.push(node);
    else for (const child of [...(node.shadowRoot?.children ?? []), ...(node.children ?? [])]) walk(child);
  };
  walk(document.querySelector("[data-testid=stMain]"));
  if (!figures.length) return null;
  const box = figures[0].getBoundingClientRect();
  const inside = Math.min(innerHeight, box.bottom) - Math.max(0, box.top);
  return Math.max(0, inside) / box.height;
}"""


def visible_share(page: Page) -> float:
    """Return the visible share of the main figure's height, from 0 to 1."""
    page.wait_for_function(f"() => ({_SHARE})() !== null", timeout=PATIENCE)
    return page.evaluate(_SHARE) or 0.0  # it may have been taken away meanwhile, to be drawn anew
