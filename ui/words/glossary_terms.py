"""The terms of the glossary, ``ui/words/glossary.toml``: by page, by search, and as links."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ui.words import texts
from ui.words.translations import ENGLISH, read_for_all

PANEL = "glossary"  # key of the panel in the session: whether it is open
SEARCH = "glossary_search"  # key of its search box, and the parameter of a link that opens it
_NOT_IN_TEXT = re.compile(r"\s*\([^()]*\)")
_TAKEN = re.compile(r"`[^`]*`|\*\*[^*]*\*\*|\[[^\]]*\]\([^)]*\)|\$[^$]*\$")  # code, bold, links, formulas


@dataclass(frozen=True)
class Example:
    """A view of the app that shows a term: a page, its focus, and values of its controls."""

    page: str
    focus: Mapping[str, str | int]
    options: Mapping[str, str | int]


@dataclass(frozen=True)
class Term:
    """One entry. ``names``: the term in every language; ``sources``: names of papers with their addresses."""

    key: str
    name: str
    definition: str
    names: tuple[str, ...]
    pages: tuple[str, ...]
    formula: str
    sources: tuple[tuple[str, str], ...]
    example: Example | None


def glossary(page: str = "") -> tuple[Term, ...]:
    """Return the terms that occur on a page, or all, in alphabetical order in the language of this run."""
    return tuple([term for term in _all_terms(texts.ROOT, texts.language()) if not page or page in term.pages])


def search(terms: Iterable[Term], query: str) -> tuple[Term, ...]:
    """Return the terms that contain every word of ``query``, those whose name begins with it first.

    Case and accents do not matter. Names are searched in every language, definitions in the current one.
    """
    wanted = _fold_case(query).split()

    def contains(term: Term) -> bool:
        text = _fold_case(" ".join([*term.names, term.definition, *(name for name, _ in term.sources)]))
        return all(word in text for word in wanted)

    def rank(term: Term) -> int:
        names = [_fold_case(name) for name in term.names]
        if any(name.startswith(" ".join(wanted)) for name in names):
            return 0
        return 1 if any(word in name for word in wanted for name in names) else 2

    return tuple(sorted(filter(contains, terms), key=rank))


def with_links(sentences: Sequence[str], terms: Collection[Term]) -> list[str]:
    """Link the first use of each term in ``sentences`` to its entry, with the definition as a tooltip.

    Text that is already code, bold, a formula or a link stays unchanged.
    """
    return list(_linked(tuple(sentences), tuple([term.key for term in terms]), texts.ROOT, texts.language()))


@lru_cache(maxsize=512)
def _linked(sentences: tuple[str, ...], keys: tuple[str, ...], root: Path, language: str) -> tuple[str, ...]:
    linked = list(sentences)
    terms = [term for term in _all_terms(root, language) if term.key in keys]
    forms = [(form, term) for term in terms for form in _forms(term)]
    done: set[str] = set()
    for form, term in sorted(forms, key=lambda pair: -len(pair[0])):
        if term.key in done:
            continue
        for number, sentence in enumerate(linked):
            if (place := _first_use(form, sentence)) is not None:
                start, end = place
                linked[number] = f"{sentence[:start]}{_link(sentence[start:end], term)}{sentence[end:]}"
                done.add(term.key)
                break
    return tuple(linked)


@lru_cache(maxsize=16)
def _all_terms(root: Path, language: str) -> tuple[Term, ...]:
    terms = [_term(key, entry, language) for key, entry in read_for_all(root, "glossary").items()]
    return tuple(sorted(terms, key=lambda term: re.sub(r"^\W+", "", _fold_case(term.name))))


def _term(key: str, entry: Mapping[str, Any], language: str) -> Term:
    name, definition = entry.get(language, entry[ENGLISH])
    example = entry.get("example")
    return Term(
        key=key,
        name=name,
        definition=definition,
        names=tuple(dict.fromkeys([entry[code][0] for code in texts.languages() if code in entry])),
        pages=tuple(entry["pages"]),
        formula=entry.get("formula", ""),
        sources=tuple([(paper, address) for paper, address in entry.get("sources", ())]),
        example=example and Example(example["page"], example.get("focus", {}), example.get("options", {})),
    )


def _forms(term: Term) -> list[str]:
    """Return the names under which a term may occur in a text: "Merge (byte-pair encoding)" as "merge"."""
    return [form for form in _NOT_IN_TEXT.sub("", term.name).split(", ") if len(form) > 2]


def _first_use(form: str, sentence: str) -> tuple[int, int] | None:
    taken = [found.span() for found in _TAKEN.finditer(sentence)]
    for found in re.finditer(rf"(?<!\w){re.escape(form)}s?(?!\w)", sentence, re.IGNORECASE):
        if not any(start < found.end() and found.start() < end for start, end in taken):
            return found.span()
    return None


def _link(words: str, term: Term) -> str:
    language = {} if texts.language() == ENGLISH else {"language": texts.language()}
    tooltip = term.definition.replace("\\", "").replace('"', "'").replace("<", "&lt;")
    return f'[{words}](glossary?{urlencode({SEARCH: term.name, **language})} "{tooltip}")'


def _fold_case(text: str) -> str:
    """Return a text in lower case, without accents and with straight apostrophes."""
    parts = unicodedata.normalize("NFKD", text.casefold().replace("’", "'"))
    return "".join(part for part in parts if not unicodedata.combining(part))
