"""Serious and critical findings of axe-core on a page."""

from __future__ import annotations

from collections.abc import Sequence

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SERIOUS = ("serious", "critical")
# Findings in Streamlit's own elements, which cannot be fixed here:
# groups of its navigation put a <div> between the list and its entries …
NAVIGATION = ("list", "listitem")
# … and formulas or code wider than their container scroll; Chromium and Firefox make such a region focusable, which
# axe does not know.
SCROLLS = ("katex-display", "<pre")
COLOUR = ("color-contrast", "link-in-text-block")  # rules whose result depends on the theme
AT_REST = 400  # milliseconds
_AXE = Axe()


def findings(page: Page, *, rules: Sequence[str] = (), within: str = "html") -> list[str]:
    """Return one line for each serious finding that is ours, of all rules or of ``rules``."""
    only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found = []
    for violation in _AXE.run(page, context=within, options={"resultTypes": ["violations"], **only}).response[
        "violations"
    ]:
        for node in violation["nodes"]:
            target = " ".join(map(str, node["target"]))
            if violation["impact"] not in SERIOUS:
                continue
            if violation["id"] in NAVIGATION and _in_navigation(page, target):
                continue
            if violation["id"] == "scrollable-region-focusable" and any(part in node["html"] for part in SCROLLS):
                continue
            found.append(f"{violation['id']}: {violation['help']}: {node['html'][:200]}")
    return found


def lasting(page: Page, *, rules: Sequence[str] = COLOUR, within: str = "html") -> list[str]:
    """Return findings that persist; elements that fade in have too little contrast at first."""
    for _ in range(6):
        if not (found := findings(page, rules=rules, within=within)):
            break
        page.wait_for_timeout(AT_REST)
    return found


def _in_navigation(page: Page, target: str) -> bool:
    return page.locator(target).first.evaluate("node => !!node.closest('[data-testid=stTopNav]')")
