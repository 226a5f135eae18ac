"""Texts of figures in the reader's language: English in a notebook, the session's language in the app.

They are in ``charts/words/<language>.toml``. ``say("layer_head", layer=3, head=0)`` fills in one of its texts;
``localize("3 self-attention")`` translates a name that the library returns in English.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

Texts = Mapping[str, Mapping[str, str]]
_NESTED = ("stack", "what")  # values of a name that are names themselves
_VALUES = {"layer": r"-?\d+", "head": r"\d+", "count": r"\d+", "stack": "encoder|decoder", "what": ".+", "name": ".+"}
_FIELD = re.compile(r"\{(\w+)\}")


@cache
def english() -> Texts:
    """Return the English texts, by section and key."""
    return tomllib.loads((Path(__file__).parents[1] / "words" / "en.toml").read_text(encoding="utf-8"))


_read: Callable[[], Texts] = english


def read_from(source: Callable[[], Texts]) -> None:
    """Set the source of the texts.

    The source must look up the language at every call, because one process serves many sessions, and a figure is made
    in the language of the session that its thread serves.
    """
    global _read
    _read = source


def say(key: str, /, **values: object) -> str:
    """Return the shared text ``key``, or ``section.key``, with ``values`` filled in."""
    section, _, name = key.rpartition(".")
    text = _read()[section or "shared"][name]
    return text.format(**values) if values else text


def localize(text: str) -> str:
    """Return an English name, note or heading in the reader's language; any other text stays as it is."""
    exact, patterns = _english_names()
    if key := exact.get(text):
        return say(key)
    for key, pattern in patterns:
        if found := pattern.fullmatch(text):
            values = found.groupdict()
            return say(key, **values | {name: localize(values[name]) for name in _NESTED if name in values})
    return text


@cache
def _english_names() -> tuple[dict[str, str], list[tuple[str, re.Pattern[str]]]]:
    """Return the key of each English text, and an expression for each name with values."""
    texts = {text: f"{section}.{key}" for section, found in english().items() for key, text in found.items()}
    patterns = []
    for key, name in english()["names"].items():
        first, *others = _FIELD.split(name)
        fields, between = others[::2], others[1::2]
        if fields and _VALUES.keys() >= set(fields):
            values = (f"(?P<{field}>{_VALUES[field]})" for field in fields)
            parts = (value + re.escape(text) for value, text in zip(values, between, strict=True))
            patterns.append((f"names.{key}", re.compile(re.escape(first) + "".join(parts))))
    return texts, patterns
