"""The opening of a checkpoint: ``opening.toml`` with its plain name and example sentences.

Every entry may claim what the model predicts and where a head attends; ``transformer.heads.opening_checks`` tests
it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from transformer.config import NEXT_SENTENCE, Rule, integer, number, of_type, one_of
from transformer.disk.plain_files import parse_toml, read_plain_text
from transformer.files.packaged_models import shipped_folder

OPENING = "opening.toml"
LONGEST_FILE = 50_000  # bytes
MAX_EXAMPLES = 20
PLACE = ("stack", "kind", "layer", "head", "token")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]+)?")
_LONGEST_TEXT = 400


def _names_tokens(rows: Any) -> str:
    named = isinstance(rows, dict) and all(row.isdecimal() and isinstance(token, str) for row, token in rows.items())
    return "" if named else "it must name a token for rows by their position: { 3 = '·cat' }"


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("sentence", "target", "second", "answer", "without"), of_type(str, "a text")),
    "stack": one_of(("encoder", "decoder")),
    "kind": one_of(("self", "cross")),
    **dict.fromkeys(("layer", "head", "token", "unit"), integer(0)),
    "next_sentence": one_of(NEXT_SENTENCE),
    "looks_at": _names_tokens,
    "least": number("a weight is between 0 and 1", lambda value: 0 <= value <= 1),
}


@dataclass(frozen=True)
class Example:
    """An example sentence.

    Attributes:
        label: Name of the example, by language.
        shows: What it shows, by language.
        target: Text that the decoder is given; empty if the model generates it.
        second: Sentence that Compare shows beside it; empty if any will do.
        place: Which of ``PLACE`` it is shown with; empty if any will do.
        answer: Output of the model; empty if nothing is claimed.
        next_sentence: Class of a pair of sentences, "IsNext" or "NotNext"; empty if nothing is claimed.
        without: Output of the model without the head of ``place``; empty if nothing is claimed.
        looks_at: For some rows of that head, by position, the token with the largest weight, which is at least
            ``least``.
        unit: Feed-forward unit of that layer with which Feed-forward opens; ``None`` for the one with the largest
            direct effect.
    """

    sentence: str
    label: Mapping[str, str]
    shows: Mapping[str, str]
    target: str = ""
    second: str = ""
    place: Mapping[str, str | int] = field(default_factory=dict)
    answer: str = ""
    next_sentence: str = ""
    without: str = ""
    looks_at: Mapping[int, str] = field(default_factory=dict)
    least: float = 0.0
    unit: int | None = None


@dataclass(frozen=True)
class Opening:
    """The name and the example sentences with which the app opens a checkpoint.

    ``name`` says what the checkpoint does, in a few words, by language; ``trained_on`` is a sentence that is shown
    beside its prediction, if other inputs would mislead. The first of ``examples`` is the opening; it has all of
    ``PLACE``.
    """

    name: Mapping[str, str]
    examples: tuple[Example, ...]
    trained_on: Mapping[str, str] = field(default_factory=dict)

    @property
    def first(self) -> Example:
        """The example that the checkpoint opens with."""
        return self.examples[0]


def read_opening(folder: Path) -> Opening | None:
    """Return the opening of a checkpoint, or this library's for known weights; ``None`` without one.

    Raises:
        ValueError: If it is invalid; the message names the file and the entry.
    """
    folder = shipped_folder(folder)
    path = folder / OPENING
    if not path.is_file():
        return None
    where = f"{folder.name}/{OPENING}"
    if path.stat().st_size > LONGEST_FILE:
        raise ValueError(f"{where} has more than {LONGEST_FILE:,} bytes")
    try:
        values = parse_toml(read_plain_text(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{where} is not valid TOML: {error}") from None
    _known(values, {"name", "opening", "example", "trained_on"}, where)
    more = values.get("example", [])
    if not isinstance(more, list) or len(more) >= MAX_EXAMPLES:
        raise ValueError(f"{where} needs its examples under [[example]], fewer than {MAX_EXAMPLES}")
    entries = {"[opening]": values.get("opening"), **{f"[[example]] {n}": entry for n, entry in enumerate(more, 1)}}
    examples = tuple(_example(entry, f"{where}, {name}") for name, entry in entries.items())
    if missing := set(PLACE) - examples[0].place.keys():
        raise ValueError(f"{where}, [opening] must say {', '.join(sorted(missing))}")
    trained_on = _by_language(values["trained_on"], f"{where}, [trained_on]") if "trained_on" in values else {}
    return Opening(_by_language(values.get("name"), f"{where}, [name]"), examples, trained_on)


def in_language(texts: Mapping[str, str], language: str) -> str:
    """Return the text in this language, or the English one."""
    return texts.get(language, texts["en"])


def _example(values: Any, where: str) -> Example:
    if not isinstance(values, dict):
        raise ValueError(f"{where} is missing")
    _known(values, {field.name for field in fields(Example)} - {"place"} | {*PLACE}, where)
    if not values.get("sentence"):
        raise ValueError(f"{where} must have a sentence")
    for name, value in values.items():
        if wanted := _RULES[name](value) if name in _RULES else "":
            raise ValueError(f"{where}: {name} is {value!r}; {wanted}")
    place = {name: values[name] for name in PLACE if name in values}
    if values.get("without") and not {"stack", "kind", "layer", "head"} <= place.keys():
        raise ValueError(f"{where}: without is the output without a head; say its stack, kind, layer and head, too")
    given = {name: value for name, value in values.items() if name not in PLACE}
    texts = {name: _by_language(values.get(name), f"{where}, {name}") for name in ("label", "shows")}
    looks_at = {int(row): token for row, token in values.get("looks_at", {}).items()}
    return Example(**{**given, **texts, "place": place, "looks_at": looks_at})


def _by_language(texts: Any, where: str) -> Mapping[str, str]:
    good = isinstance(texts, dict) and "en" in texts
    good = good and all(isinstance(text, str) and 0 < len(text.strip()) <= _LONGEST_TEXT for text in texts.values())
    if not good or not all(_LANGUAGE.fullmatch(language) for language in texts):
        raise ValueError(f"{where} must be a text by language, English first: {{ en = '…', fr = '…' }}")
    return texts


def _known(values: Mapping[str, Any], names: set[str], where: str) -> None:
    if strange := sorted(values.keys() - names):
        raise ValueError(f"{where}: nothing is called {strange[0]!r}; there are {', '.join(sorted(names))}")
