"""English texts of the browser scripts: ``say("layer {layer}", { layer })`` and labels."""

from __future__ import annotations

import re
from functools import lru_cache

from tests.conftest import ROOT

SCRIPTS = sorted((ROOT / "charts" / "canvas" / "source").rglob("*.js"))
SIGNS = ("−", "+", "1:1", "⋯", "PNG", "SVG", "PDF", "HTML", "CSV")  # the same in every language


@lru_cache
def script_texts() -> frozenset[str]:
    """Return every text that a script says."""
    found: set[str] = set()
    for script in SCRIPTS:
        code = script.read_text(encoding="utf-8")
        found |= {*re.findall(r'say\(\s*"([^"]+)"', code)}
        found |= {one for pair in re.findall(r'(?:[bB]utton|save)\(\s*"([^"]+)",\s*"([^"]+)"', code) for one in pair}
        found |= {one for pair in re.findall(r'say\(\s*\w+\s*\? "([^"]+)"\s*: "([^"]+)",?\s*\)', code) for one in pair}
    return frozenset(found - {*SIGNS})
