"""Templates that the sources mark for translation, as gettext's tools find them (docs/translating.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tests.conftest import ROOT

FOLDERS = ("transformer", "charts", "ui", "views", "pages", "web")
SCRIPTS = [*sorted((ROOT / "charts" / "canvas" / "source").rglob("*.js")), ROOT / "ui" / "show" / "exports.js"]
SIGNS = ("−", "+", "1:1", "⋯", "PNG", "SVG", "PDF", "HTML", "CSV")  # the same in every language
NAMES = {"Message", "N_", "_"}


@lru_cache
def marked() -> dict[str, str]:
    """Return every template with the file in which it was first found."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for call in calls_in(path):
                if isinstance(template := call.args[0], ast.Constant):
                    found.setdefault(template.value, str(path.relative_to(ROOT)))
    return found


@lru_cache
def marked_in_scripts() -> dict[str, str]:
    """Return what ``marked`` returns, for browser scripts: ``say("layer {layer}", { layer })`` and so on."""
    found: dict[str, str] = {}
    for script in SCRIPTS:
        code = script.read_text(encoding="utf-8")
        said = re.findall(r'say\(\s*"([^"]+)"', code)
        said += [one for pair in re.findall(r'(?:[bB]utton|save)\(\s*"([^"]+)",\s*"([^"]+)"', code) for one in pair]
        said += [one for pair in re.findall(r'say\(\s*\w+\s*\? "([^"]+)"\s*: "([^"]+)",?\s*\)', code) for one in pair]
        found |= {words: str(script.relative_to(ROOT)) for words in said if words not in {*SIGNS, *found}}
    return found


def calls_in(path: Path) -> Iterator[ast.Call]:
    """Return calls of the names that mark a template, with at least one argument."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in NAMES:
                yield node
