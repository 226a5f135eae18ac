"""Visible content of a page as comparable values, and a function that changes every control."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page

from tests.browser.conftest import settle

# Text in document order, including shadow roots; figures as their data; our canvases as their pixels.
_SEEN = """(skipped) => {
  const main = document.querySelector("[data-testid=stMain]");
  const found = {text: [], figures: [], pictures: [], controls: {}};
  const plain = (value) => ArrayBuffer.isView(value) ? Array.from(value) : value;
  const visible = (element) => element.checkVisibility ? element.checkVisibility() : true;
  const hash = (text) => {
    let sum = 0;
    for (let i = 0; i < text.length; i++) sum = (Math.imul(sum, 31) + text.charCodeAt(i)) | 0;
    return `${text.length}:${sum}`;
  };
  const drawing = (graph) => JSON.stringify(
    [graph.data, graph.layout.title, graph.layout.annotations, graph.layout.xaxis?.title, graph.layout.yaxis?.title,
     graph.layout.xaxis?.range, graph.layout.yaxis?.range],
    (key, value) => key.startsWith("_") || key === "uid" ? undefined : plain(value));
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const words = node.textContent.trim();
      if (words && node.parentElement && visible(node.parentElement)) found.text.push(words);
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE && node.nodeType !== Node.DOCUMENT_FRAGMENT_NODE) return;
    if (node.nodeType === Node.ELEMENT_NODE) {
      if (["STYLE", "SCRIPT"].includes(node.tagName) || skipped.some((name) => node.matches(name))) return;
      if (node.classList.contains("js-plotly-plot")) { found.figures.push(drawing(node)); return; }
      if (node.tagName === "CANVAS") {
        const grid = node.closest("[data-testid=stDataFrame]");
        if (grid) found.text.push(node.textContent.trim());
        else if (node.width) found.pictures.push(hash(node.toDataURL()));
        return;
      }
      if (["INPUT", "TEXTAREA"].includes(node.tagName)) {
        const name = [...(node.closest("[class*=st-key-]")?.classList ?? [])].find((c) => c.startsWith("st-key-"));
        const place = `${name} ${node.getAttribute("aria-label") ?? ""} ${node.type === "radio" ? node.value : ""}`;
        found.controls[place] = ["checkbox", "radio"].includes(node.type) ? node.checked : node.value;
      }
      for (const state of ["aria-checked", "aria-selected", "aria-valuenow", "aria-current", "aria-pressed"])
        if (node.hasAttribute(state))
          found.text.push(`${node.textContent.trim()} ${state} ${node.getAttribute(state)}`);
      if (node.shadowRoot) walk(node.shadowRoot);
    }
    for (const child of node.childNodes) walk(child);
  };
  walk(main);
  return found;
}"""

_CONTROLS = """() => {
  const kinds = {
    stButtonGroup: "buttons", stCheckbox: "switch", stSlider: "slider", stNumberInput: "number",
    stSelectbox: "list", stTextInput: "line", stTabs: "tabs", stMultiSelect: "several", stTextArea: "box",
  };
  const found = [];
  for (const [id, kind] of Object.entries(kinds))
    for (const element of document.querySelectorAll(`[data-testid=stMain] [data-testid=${id}]`)) {
      if (!element.checkVisibility()) continue;
      let holder = element, name;
      for (; holder && !name; holder = holder.parentElement)
        name = [...holder.classList].find((one) => one.startsWith("st-key-"));
      found.push([kind, name ?? ""]);
    }
  return found;
}"""

_HOLDERS = {
    "buttons": "stButtonGroup",
    "switch": "stCheckbox",
    "slider": "stSlider",
    "number": "stNumberInput",
    "list": "stSelectbox",
    "line": "stTextInput",
    "tabs": "stTabs",
    "several": "stMultiSelect",
    "box": "stTextArea",
}


def seen(page: Page, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return ``text``, ``figures``, ``pictures`` and ``controls`` of a page, except those in ``without``."""
    page.mouse.move(2, 2)
    return page.evaluate(_SEEN, list(without))


def change_every_control(page: Page, *, without: tuple[str, ...] = ()) -> list[str]:
    """Change each control of the page once, including controls that appear meanwhile; return their keys."""
    changed: list[str] = []
    while True:
        ahead = [
            (kind, key)
            for kind, key in page.evaluate(_CONTROLS)
            if key and key not in changed and not any(name in key for name in without)
        ]
        if not ahead:
            return changed
        kind, key = ahead[0]
        changed.append(key)
        holder = page.locator(f"[class~='{key}']").get_by_test_id(_HOLDERS[kind]).first
        if not holder.count():
            holder = page.locator(f"[class~='{key}'][data-testid={_HOLDERS[kind]}]").first
        if _change(page, holder, kind):
            settle(page)


def _change(page: Page, holder: Locator, kind: str) -> bool:
    if kind in ("buttons", "tabs"):
        options = holder.get_by_role("tab" if kind == "tabs" else "radio")
        if not options.count():  # pills that allow several choices
            options = holder.get_by_role("button")
        chosen = "aria-selected" if kind == "tabs" else "aria-checked"
        others = [one for one in options.all() if one.get_attribute(chosen) != "true" and one.is_enabled()]
        if others:
            others[-1].click()
        return bool(others)
    if kind == "switch":
        holder.locator("label").first.click()
    elif kind == "slider":
        before = holder.inner_text()
        for key in ("ArrowRight", "ArrowLeft"):  # at the end of its range the slider goes back
            if holder.inner_text() == before:
                holder.get_by_role("slider").first.press(key)
    elif kind == "number":
        box = holder.locator("input")
        box.press("ArrowUp")
        box.press("Enter")
    elif kind in ("line", "box"):
        box = holder.locator("input, textarea").first
        box.fill("book")
        box.press("Control+Enter" if kind == "box" else "Enter")
    elif kind == "list":
        before = holder.inner_text(), holder.locator("input").first.input_value()
        for key in ("ArrowDown", "ArrowUp"):
            # A list whose choice led to another view may be gone.
            if not holder.count() or (holder.inner_text(), holder.locator("input").first.input_value()) != before:
                break
            box = holder.locator("input").first
            box.click()
            box.press(key)
            box.press("Enter")
            settle(page)
    elif kind == "several":
        holder.locator("input").first.press("Backspace")
        page.keyboard.press("Escape")
    return True
