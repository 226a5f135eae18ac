"""Text files of one language merged with those of English, so that a partly translated folder works.

English has every text. Another language replaces texts key by key and table by table; a text that could break a page
(another type of value, another list length, other ``{placeholders}``) or a file that is not TOML is ignored, with a
line in the log, and the English text is used.
"""

import logging
import os
import re
import tomllib
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any

from transformer.disk.plain_files import parse_toml
from ui.server.limits import public
from ui.words.once_a_run import once_a_run

ENGLISH = "en"
SHARED = ("common", "examples")

_LOG = logging.getLogger(__name__)
_LATEX_ARGUMENT = re.compile(r"\\[A-Za-z]+\{[^{}]*\}|[_^]\{[^{}]*\}")
_PLACEHOLDER = re.compile(r"\{\w+[^{}]*\}")


@once_a_run
def names_of_languages(folder: Path) -> dict[str, str]:
    """Return the names of languages by code, from their ``common.toml``; English first."""
    found = {}
    for code in sorted(os.listdir(folder)):
        if (when := changed_at(path := f"{folder}/{code}/common.toml")) is None:
            continue
        language = _parsed_or_nothing(path, when).get("language")
        name = language.get("name") if isinstance(language, dict) else None
        if isinstance(name, str) and name.strip():
            found[code] = name.strip()
    return {ENGLISH: found.pop(ENGLISH, "English"), **found}


@once_a_run
def read_texts(root: Path, name: str, language: str) -> dict[str, Any]:
    """Return the texts of that name merged with the English ones, shared by all sessions.

    Those of a page are with its views, ``views/<name>/<language>.toml``; those of the frame in ``ui/words/<language>``,
    and "figures" in ``charts/words/<language>.toml``.

    Raises:
        FileNotFoundError: If there is no English file.
    """
    folders = {**dict.fromkeys(SHARED, f"ui/words/*/{name}.toml"), "figures": "charts/words/*.toml"}
    place = f"{root}/{folders.get(name, f'views/{name}/*.toml')}"
    english = place.replace("*", ENGLISH)
    if (english_changed := changed_at(english)) is None:
        raise FileNotFoundError(f"there is no file {english}: every text is in English first")
    translated = place.replace("*", language)
    translated_changed = None if language == ENGLISH else changed_at(translated)
    if translated_changed is None:
        return _parse(english, english_changed)
    return _merge(english, english_changed, translated, translated_changed)


def read_for_all(root: Path, name: str) -> dict[str, Any]:
    """Return a file that is the same for all languages; shared by all sessions, so never change it."""
    path = f"{root}/ui/words/{name}.toml"
    return _parse(path, changed_at(path))


def placeholders(text: str) -> frozenset[str]:
    """Return what ``str.format`` would fill in: ``{layer}`` and the like, but not LaTeX's braces."""
    if "{{" in text:  # written for str.format, and contains LaTeX
        try:
            return frozenset(f"{{{name}:{how}}}" for _, name, how, _ in Formatter().parse(text) if name is not None)
        except ValueError:
            return frozenset((text,))
    return frozenset(_PLACEHOLDER.findall(_LATEX_ARGUMENT.sub("", text)))


def merge_over(english: Any, translated: Any, *, place: str = "") -> Any:
    """Return ``translated`` merged over ``english``; a part that does not fit is replaced by English."""
    if isinstance(english, dict) and isinstance(translated, dict):
        known = {
            key: merge_over(value, translated[key], place=f"{place}.{key}") if key in translated else value
            for key, value in english.items()
        }
        return {**{key: value for key, value in translated.items() if key not in english}, **known}
    if isinstance(english, list) and isinstance(translated, list) and len(english) == len(translated):
        return [
            merge_over(one, other, place=f"{place}[{index}]")
            for index, (one, other) in enumerate(zip(english, translated, strict=True))
        ]
    if isinstance(english, str) and isinstance(translated, str) and placeholders(english) == placeholders(translated):
        return translated
    if type(english) is type(translated) and not isinstance(english, str | list):
        return translated
    _LOG.warning("%s does not fit the English text and is left out: %r", place.lstrip("."), translated)
    return english


@once_a_run
def changed_at(path: str) -> int | None:
    """Return when a file was changed; ``None`` if it does not exist.

    It is called for every text and looked up once per run, or only once on a public server, whose files nobody edits.
    """
    return _changed_at_first(path) if public() else _changed_now(path)


def _changed_now(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


_changed_at_first = lru_cache(maxsize=512)(_changed_now)


@lru_cache(maxsize=256)
def _parse(path: str, _changed: int) -> dict[str, Any]:
    return parse_toml(Path(path).read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def _parsed_or_nothing(path: str, _changed: int) -> dict[str, Any]:
    try:
        return parse_toml(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        _LOG.warning("%s is left out: %s", "/".join(Path(path).parts[-2:]), error)
        return {}


@lru_cache(maxsize=256)
def _merge(english: str, english_changed: int, translated: str, translated_changed: int) -> dict[str, Any]:
    place = "/".join(Path(translated).with_suffix("").parts[-2:])
    return merge_over(_parse(english, english_changed), _parsed_or_nothing(translated, translated_changed), place=place)
