"""Text files of one language merged with those of English, so that a partly translated folder works.

English has every text. Another language replaces texts key by key and table by table; a text that could break a page
(another type of value, another list length, other ``{placeholders}``) or a file that is not TOML is ignored, with a
line in the log, and the English text is used. Each file is read once; an edited one counts after a restart.
"""

import logging
import os
import re
import tomllib
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from transformer.disk.plain_files import parse_toml

ENGLISH = "en"
SHARED = ("common", "examples")

_LOG = logging.getLogger(__name__)
_LATEX_ARGUMENT = re.compile(r"\\[A-Za-z]+\{[^{}]*\}|[_^]\{[^{}]*\}")
_PLACEHOLDER = re.compile(r"\{\w+[^{}]*\}")


@cache
def names_of_languages(folder: Path) -> dict[str, str]:
    """Return the names of languages by code, from their ``common.toml``; English first."""
    found = {}
    for code in sorted(os.listdir(folder)):
        language = _parsed_or_nothing(folder / code / "common.toml").get("language")
        name = language.get("name") if isinstance(language, dict) else None
        if isinstance(name, str) and name.strip():
            found[code] = name.strip()
    return {ENGLISH: found.pop(ENGLISH, "English"), **found}


@cache
def read_texts(root: Path, name: str, language: str) -> dict[str, Any]:
    """Return the texts of that name merged with the English ones, shared by all sessions.

    Those of a page are with its views, ``views/<name>/<language>.toml``; those of the frame in ``ui/words/<language>``,
    and "figures" in ``charts/words/<language>.toml``.

    Raises:
        FileNotFoundError: If there is no English file.
    """
    folders = {**dict.fromkeys(SHARED, f"ui/words/*/{name}.toml"), "figures": "charts/words/*.toml"}
    place = folders.get(name, f"views/{name}/*.toml")
    english = root / place.replace("*", ENGLISH)
    if not english.is_file():
        raise FileNotFoundError(f"there is no file {english}: every text is in English first")
    if language == ENGLISH:
        return parse_toml(english.read_text(encoding="utf-8"))
    translated = root / place.replace("*", language)
    name_in_log = "/".join(translated.with_suffix("").parts[-2:])
    return merge_over(read_texts(root, name, ENGLISH), _parsed_or_nothing(translated), place=name_in_log)


@cache
def read_for_all(root: Path, name: str) -> dict[str, Any]:
    """Return a file that is the same for all languages; shared by all sessions, so never change it."""
    return parse_toml((root / "ui" / "words" / f"{name}.toml").read_text(encoding="utf-8"))


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


def _parsed_or_nothing(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except OSError:  # there is none
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        _LOG.warning("%s is left out: %s", "/".join(path.parts[-2:]), error)
        return {}
