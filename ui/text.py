"""Texts of the pages and of the frame, kept outside the code in ``ui/texts/<language>/*.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

TEXTS = Path(__file__).parent / "texts" / "en"

# Everything that CommonMark, Streamlit's directives (:red[…], :material/…:, $TeX$) or HTML could read as markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&])")


class PageText(Mapping[str, str]):
    """Paragraphs of one page by name; a missing name is an error that lists the names there are."""

    def __init__(self, name: str, values: Mapping[str, object]) -> None:
        self._name = name
        self._values = dict(values)
        for key in ("title", "question"):
            if not isinstance(self._values.get(key), str) or not self._values[key].strip():
                raise ValueError(f"ui/texts/en/{name}.toml needs a text {key!r}")
        look_for = self._values.get("look_for")
        if not isinstance(look_for, list) or len(look_for) != 3 or not all(isinstance(s, str) for s in look_for):
            raise ValueError(f"ui/texts/en/{name}.toml needs look_for = three sentences; it has {look_for!r}")

    @property
    def title(self) -> str:
        return self._values["title"]

    @property
    def question(self) -> str:
        return self._values["question"]

    @property
    def look_for(self) -> tuple[str, ...]:
        return tuple(self._values["look_for"])

    def __getitem__(self, key: str) -> str:
        try:
            return self._values[key]
        except KeyError:
            raise KeyError(
                f"ui/texts/en/{self._name}.toml has no text {key!r}; it has {', '.join(sorted(self._values))}"
            ) from None

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Example:
    """A sentence that shows something; ``target`` is empty where the model is to answer by itself."""

    label: str
    sentence: str
    shows: str
    target: str = ""


def page_text(name: str) -> PageText:
    """The text of one page. Raises ``ValueError`` without title, question and three ``look_for`` sentences."""
    return PageText(name, _read(TEXTS / f"{name}.toml"))


def common(key: str, **values: object) -> str:
    """A text of the frame by its dotted name: ``common("sidebar.sentence")``; ``values`` fill its ``{…}``."""
    section, _, name = key.partition(".")
    text = _read(TEXTS / "common.toml")[section][name]
    return text.format(**values) if values else text


def examples() -> tuple[Example, ...]:
    return tuple(Example(**values) for values in _read(TEXTS / "examples.toml")["example"])


def default_sentence() -> str:
    return _read(TEXTS / "examples.toml")["default"]


def as_plain(text: str) -> str:
    """Text that shows as exactly these characters in ``st.markdown`` and its relatives: users type anything."""
    return _MARKUP.sub(r"\\\1", text)


def _read(path: Path) -> dict:
    return _parse(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _parse(path: Path, _changed: int) -> dict:
    return tomllib.loads(path.read_text(encoding="utf-8"))
