"""Every text that the code uses exists in every language, with the same placeholders.

Uses are found in the source: ``page_text("heads")["role"]``, ``p.text["claim"].format(head=…)`` in ``views/<page>/``,
also through variables, parameters of the type ``PageText`` and functions that return such texts. A key made by an
f-string stands for all keys of its form, and one of them must exist; its placeholders are not checked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from tests.conftest import ROOT
from ui.words.texts import languages
from ui.words.translations import read_texts

FILES = sorted(path for folder in ("ui", "views", "pages") for path in (ROOT / folder).rglob("*.py"))
PAGES = sorted(path.parent.name for path in (ROOT / "views").glob("*/en.toml"))
KIT = {"say": 0, "md": 0, "words": 0, "formula": 1}  # methods of ``Page``, and which argument names the text
Texts = tuple[str, ...]  # the page, and the tables that lead to the text


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def key_of(node: ast.expr) -> str | None:
    """Return a literal as a regular expression; an f-string with any values; ``None`` if unknown."""
    if isinstance(node, ast.Constant):
        return re.escape(node.value) if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (re.escape(one.value) if isinstance(one, ast.Constant) else ".+" for one in node.values)
        return "".join(parts)
    return None


class Asked(ast.NodeVisitor):
    """Yield the texts that one file uses: (line, page and tables, key, filled-in names or ``None``)."""

    def __init__(self, page: str, makers: Mapping[str, Texts]) -> None:
        self.page, self.makers = page, makers
        self.names: list[dict[str, Texts | None]] = [{}]
        self.found: list[tuple[int, Texts, str, frozenset[str] | None]] = []

    def texts_of(self, node: ast.expr | None) -> Texts | None:
        """Return which texts an expression contains, as far as the source shows."""
        if isinstance(node, ast.Name):
            return next((scope[node.id] for scope in reversed(self.names) if node.id in scope), None)
        if isinstance(node, ast.Attribute) and node.attr == "text" and isinstance(node.value, ast.Name):
            return (self.page,) if node.value.id == "p" and self.page else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name == "page_text" and isinstance(node.args[0], ast.Constant):
                return (node.args[0].value,)
            return self.texts_of(node.args[0]) if name == "text_for" and node.args else self.makers.get(name)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            texts = self.texts_of(node.value)
            return (*texts, node.slice.value) if texts and isinstance(node.slice.value, str) else None
        return None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        own = {
            one.arg: (self.page,)
            if isinstance(one.annotation, ast.Name)
            and one.annotation.id == "PageText"
            and one.arg == "text"
            and self.page
            else None
            for one in arguments
        }
        self.names.append(own)
        self.generic_visit(node)
        self.names.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [None] * len(target.elts)
                pairs = [*zip(target.elts, values, strict=False)]
            for name, value in pairs:
                if isinstance(name, ast.Name):
                    self.names[-1][name.id] = self.texts_of(value)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "format":
            whole = not node.args and all(one.arg for one in node.keywords)
            self._ask(function.value, frozenset(str(one.arg) for one in node.keywords) if whole else None)
        if isinstance(function, ast.Attribute) and function.attr in KIT and self.page:
            self._ask_kit(node, KIT[function.attr])
        self.generic_visit(node)

    def _ask_kit(self, node: ast.Call, place: int) -> None:
        """Note the text that a method of ``Page`` is given by its dotted name, with the values for its fields."""
        if len(node.args) > place and isinstance(node.func.value, ast.Name) and node.func.value.id == "p":
            *tables, key = (key_of(node.args[place]) or "").split(r"\.")
            if ".+" in "".join(tables):
                tables, key = tables[: next(place for place, one in enumerate(tables) if ".+" in one)], ".+"
            if key and (tables or key != ".+"):
                known = all(one.arg for one in node.keywords)  # not ``**values``
                values = frozenset(str(one.arg) for one in node.keywords) if known else None
                self.found.append((node.lineno, (self.page, *tables), key, values))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._ask(node, None)
        self.generic_visit(node)

    def _ask(self, node: ast.expr, filled: frozenset[str] | None) -> None:
        if isinstance(node, ast.Subscript) and (texts := self.texts_of(node.value)) and (key := key_of(node.slice)):
            self.found.append((node.lineno, texts, key, filled))


@cache
def makers() -> Mapping[str, Texts]:
    """Return functions that only return texts, such as ``handout_text``."""
    reader, found = Asked("", {}), {}
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return) and len(node.body) <= 2:
                found[node.name] = reader.texts_of(node.body[-1].value)
    return {name: texts for name, texts in found.items() if texts}


def asked(path: Path) -> list[tuple[int, Texts, str, frozenset[str] | None]]:
    folder = path.relative_to(ROOT).parts
    page = folder[1] if folder[0] == "views" else path.stem if folder[0] == "pages" else ""
    reader = Asked(page if page in PAGES else "", makers())
    reader.visit(tree_of(path))
    return reader.found


def values(page: str, tables: Texts, language: str) -> list[Mapping[str, object]]:
    """Return the tables that may contain a key: some kinds of model override the usual texts."""
    top = read_texts(ROOT, page, language)
    tops = [top, *(one for one in top.values() if isinstance(one, dict))] if not tables else [top]
    for name in tables:
        tops = [one[name] for one in tops if isinstance(one.get(name), dict)]
    return tops


def names_in(text: str) -> set[str]:
    return {
        re.split(r"[.\[]", name)[0]
        for _, name, _, _ in Formatter().parse(re.sub(r"\$[^$]*\$", "", text))
        if name is not None
    }


def problems(path: Path) -> Iterator[str]:
    for line, (page, *tables), key, filled in asked(path):
        for language in languages():
            where = f"{path.relative_to(ROOT)}:{line}: views/{page}/{language}.toml"
            holders = values(page, tuple(tables), language)
            if tables and not holders:
                continue  # a text whose characters are used, or an error about the table's own key
            found = [text for one in holders for name, text in one.items() if re.fullmatch(key, name)]
            if not found:
                yield f"{where} has no text {'.'.join((*tables, key))!r}"
            for text in found if filled is not None and ".+" not in key else ():
                if isinstance(text, str) and (missing := names_in(text) - filled):
                    yield f"{where}: {key!r} has {missing}, which the code does not fill in: {text!r}"


def test_the_texts_that_code_asks_for_are_found() -> None:
    """Test the search itself: if it found nothing, nothing would be missing."""
    counts = {path: len(asked(path)) for path in FILES}
    assert sum(counts.values()) > 1000


def test_every_text_that_code_asks_for_is_there_in_every_language() -> None:
    assert not [problem for path in FILES for problem in problems(path)]


def test_a_text_that_was_renamed_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ROOT / "views" / "overview" / "asks_in_a_test.py"
    source = """
def draw(p):
    page, text = page_text("attention"), page_text("overview")
    p.text["no such"]
    page["step_no_such"]
    text["no such"].format(a=1)
    page[f"nothing_{p}"]
    page["claim_no_such"]
    page_text("lens")["title"].format(layer=1)
    page_text("training")["time_most_help"].format(layer=1)
"""
    monkeypatch.setitem(globals(), "tree_of", lambda path: ast.parse(source))
    found = [*problems(file)]
    missing = [problem for problem in found if "has no text" in problem]
    assert len(missing) == 6 * len(languages()), "the one that is formatted is asked for twice"
    assert [problem for problem in found if problem not in missing and "{'change'}" in problem]
