"""Every text that code asks for exists in every language, with the values that it is given.

Uses are found in the source: ``p.say("row.broad", share=x)``, ``page_text("heads")["role"]``, ``common("wait.list")``,
``say("lens.logits")`` in figures, also through a variable or a parameter. An f-string stands for any text of its form.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

import pytest

import transformer
from charts.toolkit.words import localize, say
from tests.conftest import ROOT
from tests.ui.script_texts import SCRIPTS, script_texts
from tests.ui.test_languages import ENGLISH as OF_PAGES
from transformer import InputError
from transformer.errors import CheckpointError
from ui.words import texts
from ui.words.texts import languages, problem_text
from ui.words.translations import placeholders, read_texts

ENGLISH = read_texts(ROOT, "figures", "en")
FOLDERS = ("transformer", "charts", "ui", "views", "pages", "web")
# Methods of ``Page``: which argument names the text, and what follows that name.
KIT = {"say": (0, ""), "md": (0, ""), "words": (0, ""), "formula": (1, ""), "option": (0, r"\.label"), "token": (0, "")}
Asked = tuple[int, str, str, frozenset[str] | None]  # line, page, key as an expression, values (``None``: unknown)


@lru_cache
def trees() -> Mapping[Path, ast.Module]:
    files = (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py")))
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}


def keys_of(node: ast.expr) -> list[str]:
    """Return which keys an expression may be, as regular expressions; nothing if that is unknown."""
    if isinstance(node, ast.IfExp):
        return [*keys_of(node.body), *keys_of(node.orelse)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(re.escape(one.value) if isinstance(one, ast.Constant) else ".+" for one in node.values)]
    return [re.escape(node.value)] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def asked(tree: ast.Module, page: str) -> Iterator[Asked]:
    """Yield the texts that a module of this page uses; ``page`` is empty in modules of no page."""
    for scope in tree.body:
        yield from _asked(scope, page)


def _asked(scope: ast.stmt, page: str) -> Iterator[Asked]:
    bound: dict[str, set[tuple[str, str] | None]] = defaultdict(set)

    def places_of(node: ast.expr) -> list[tuple[str, str]]:
        """Return which texts an expression contains: a page, and the key that leads to the text or the table."""
        if isinstance(node, ast.Name):
            return [next(iter(found))] if len(found := bound.get(node.id, {None})) == 1 and None not in found else []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("page_text", "text_for") and node.args:
            name = node.args[0]
            return [(name.value, "")] if isinstance(name, ast.Constant) else places_of(name)
        if isinstance(node, ast.Subscript):
            keys = keys_of(node.slice)
            return [
                (name, rf"{place}\.{key}" if place else key) for name, place in places_of(node.value) for key in keys
            ]
        return [(page, "")] if page and ast.unparse(node) == "p.text" else []

    for node in ast.walk(scope):
        if isinstance(node, ast.arg):
            bound[node.arg].add((page, "") if page and getattr(node.annotation, "id", "") == "PageText" else None)
        if isinstance(node, ast.comprehension | ast.For) and isinstance(node.target, ast.Name):
            bound[node.target.id].add(None)
        for target in node.targets if isinstance(node, ast.Assign) else ():
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            for name, value in zip(target.elts, node.value.elts, strict=True) if both else [(target, node.value)]:
                if isinstance(name, ast.Name):
                    bound[name.id].add(next(iter(places_of(value)), None))
    for node in ast.walk(scope):
        if isinstance(node, ast.Subscript):
            yield from ((node.lineno, *place, None) for place in places_of(node) if place[1])
        if isinstance(node, ast.keyword) and node.arg == "wait":
            yield from ((node.lineno, "common", key, frozenset()) for key in keys_of(node.value))
        if not isinstance(node, ast.Call):
            continue
        values = frozenset(str(one.arg) for one in node.keywords) if all(one.arg for one in node.keywords) else None
        name, method = ast.unparse(node.func), getattr(node.func, "attr", "")
        if method == "format" and not node.args:
            yield from ((node.lineno, *place, values) for place in places_of(node.func.value) if place[1])
        if name in ("common", "texts.common", "say") and node.args:
            start, where = (r"(shared\.)?", "figures") if name == "say" else ("", "common")
            yield from ((node.lineno, where, start + key, values or None) for key in keys_of(node.args[0]))
        if page and name == f"p.{method}" and method in KIT and len(node.args) > KIT[method][0]:
            place, end = KIT[method]
            yield from ((node.lineno, page, key + end, values) for key in keys_of(node.args[place]) if key != ".+")


@cache
def flat(page: str, language: str) -> Mapping[str, object]:
    """Return all texts and tables of a page by dotted key."""

    def entries(value: object, start: str) -> Iterator[tuple[str, object]]:
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield start + key, inner
            yield from entries(inner, f"{start}{key}.")

    return dict(entries(read_texts(ROOT, page, language), ""))


def problems(texts: Iterable[Asked]) -> Iterator[str]:
    for line, name, key, values in texts:
        wanted = re.compile(rf"(of_\w+\.)?{key}")  # some kinds of model have texts of their own
        for language in languages():
            found = [text for place, text in flat(name, language).items() if wanted.fullmatch(place)]
            if not found:
                yield f"line {line}: {name} has no text {key!r} in {language}"
            for text in found if values is not None and ".+" not in key else ():
                fields = (
                    {re.split(r"[:}]", field[1:])[0] for field in placeholders(text)}
                    if isinstance(text, str)
                    else set()
                )
                if missing := fields - values:
                    yield f"line {line}: {name}: {key!r} has {missing}, which the code does not fill in: {text!r}"


def page_of(path: Path) -> str:
    folder = path.relative_to(ROOT).parts
    page = folder[1] if folder[0] == "views" else path.stem if folder[0] == "pages" else ""
    return page if (ROOT / "views" / page / "en.toml").exists() else ""


def test_every_text_that_code_asks_for_is_there_in_every_language() -> None:
    found = {path: [*asked(tree, page_of(path))] for path, tree in trees().items()}
    assert sum(map(len, found.values())) > 1500, "the search finds what there is"
    assert not [f"{path.name}, {problem}" for path, texts in found.items() for problem in problems(texts)]


def test_a_text_that_was_renamed_is_missed() -> None:
    tree = ast.parse("""
def draw(p):
    page, text = page_text("attention"), page_text("overview")
    p.text["no such"], page["step"]["no_such"], text["no such"].format(a=1), page[f"nothing_{p}"]
    p.say("nothing.at_all", small=True)
    common("wait.nothing"), say("lens.nothing"), p.option("nothing", [], key="k")
    page_text("lens")["title"].format(layer=1)
    page_text("training")["time_most_help"].format(layer=1)
""")
    missing, unfilled = [], []
    for problem in problems(asked(tree, "overview")):
        (missing if "has no text" in problem else unfilled).append(problem)
    assert len(missing) == 9 * len(languages()), "the one that is formatted is asked for twice"
    assert len(unfilled) == len(languages()) and "{'change'}" in unfilled[0]


@lru_cache
def strings() -> frozenset[str]:
    """Return all strings and named arguments of the sources; in strings with values, each value as "{}"."""
    found = set()
    for node in (node for tree in trees().values() for node in ast.walk(tree)):
        if isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        if isinstance(node, ast.JoinedStr):
            found.add("".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values))
    return frozenset(found)


# Looked up by a trait of the model, the number of a step, a part of the model, or by a script of the browser.
BY_VALUE = re.compile(r"look_for_where\.|step\.\d|(part_)?short\.|sheet_|aloud_(values|rollout|predicting)|quoted\.")


def test_every_text_of_a_page_is_used() -> None:
    """By its key, or by an f-string that puts its key together."""
    patterns = [re.escape(one).replace(r"\{\}", ".+") for one in strings() if "{}" in one and re.search(r"\w\w", one)]
    put_together = re.compile("|".join(patterns))
    for name in OF_PAGES.keys() - {"figures", "examples"}:
        for place in (re.sub(r"\[\d+\]", "", place) for place in OF_PAGES[name] if not BY_VALUE.match(place)):
            names = {place, place.rpartition(".")[2]}
            assert names & strings() or any(map(put_together.fullmatch, names)), f"no code reads {name}: {place}"


def test_every_text_of_figures_is_used_and_written_once() -> None:
    """By its key, or by its English text, which the library returns and tables have as a heading."""
    unused = [
        f"{section}.{key}"
        for section, found in ENGLISH.items()
        for key, text in found.items()
        if not {key if section == "shared" else f"{section}.{key}"} & strings()
        and not (section == "names" and {text, re.sub(r"\{\w+\}", "{}", text)} & strings())
        and not (section == "names" and key.startswith("the_"))  # label_in_sentence makes them of other names
    ]
    assert not unused
    found = [text for section in ENGLISH.values() for text in section.values()]
    assert len(found) == len(set(found))


def test_scripts_say_literals() -> None:
    """A template literal would be a text that nobody finds."""
    assert len(script_texts()) > 60
    assert not [script for script in SCRIPTS if re.search(r"say\(\s*`", script.read_text(encoding="utf-8"))]


def test_names_of_the_library_are_localized_and_tokens_are_not(in_language, tiny_checkpoint) -> None:
    names = {
        "3 self-attention": "3 auto-attention",
        "the self-attention of layer 12": "l’auto-attention de la couche 12",
    }
    assert [localize(name) for name in names] == [*names] and say("layer_head", layer=1, head=2) == "layer 1, head 2"
    in_language("fr")
    assert [localize(name) for name in names] == [*names.values()]
    for same in ("layer x", "kitchen layer 2", "adds up", "·the", ""):
        assert localize(same) == same
    trace = transformer.trace(tiny_checkpoint("translator"), "A cat.", source_pads=2)
    assert trace.notes and not [note for note in trace.notes if localize(note) == note]


def test_errors_are_english_and_name_no_folder_of_a_public_server(in_language, monkeypatch: pytest.MonkeyPatch) -> None:
    in_language("fr")
    monkeypatch.setattr(texts, "without_folders", lambda text: text.replace("/srv", "…"))
    assert problem_text(CheckpointError("/srv/a is not a directory")) == "…/a is not a directory"
    assert problem_text(InputError("There is no class “/srv”.")) == "There is no class “/srv”."
    assert problem_text(ValueError()) == "ValueError"
