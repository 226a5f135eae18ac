"""Widget keys have one form: words with spaces, beginning with the page or part, as in "mask undo"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS = re.compile(r"[a-z0-9{}]+(-[a-z0-9{}]+)*( [a-z0-9{}]+(-[a-z0-9{}]+)*)*")
# For these the key is a parameter of the address and must not change, because people keep addresses.
IN_ADDRESS = re.compile(
    r"choice\.\w+|p\.(asked|option|toggle|token)|chosen_option|chosen_section|one_of|tabs|second_sentence|read_option|_draw|fold"
)


def keys() -> Iterator[tuple[str, str]]:
    for path in (path for name in ("ui", "views", "pages") for path in (ROOT / name).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or IN_ADDRESS.fullmatch(ast.unparse(call.func)):
                continue
            for word in call.keywords:
                if word.arg == "key" and isinstance(word.value, ast.Constant | ast.JoinedStr):
                    text = ast.unparse(word.value)
                    yield f"{path}:{call.lineno}", re.sub(r"\{[^{}]*\}", "{}", text.removeprefix("f")[1:-1])


def test_keys_are_words_with_spaces() -> None:
    found = list(keys())
    assert len(found) > 100
    assert [(place, key) for place, key in found if not WORDS.fullmatch(key)] == []
