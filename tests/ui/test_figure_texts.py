"""Texts of figures, the library and the browser scripts: all are used, all used ones exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

import transformer
from charts.toolkit.words import localize, say
from tests.conftest import ROOT
from tests.ui.script_texts import SCRIPTS, script_texts
from transformer import InputError
from transformer.errors import CheckpointError
from ui.compute import store
from ui.words import figure_texts, texts
from ui.words.figure_texts import browser_words, problem_text
from ui.words.texts import languages
from ui.words.translations import read_texts

ENGLISH = read_texts(ROOT, "figures", "en")
FOLDERS = ("transformer", "charts", "ui", "views", "pages", "web")


@pytest.fixture
def in_french(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")


@lru_cache
def trees() -> tuple[ast.Module, ...]:
    files = (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py")))
    return tuple(ast.parse(file.read_text(encoding="utf-8")) for file in files)


@lru_cache
def strings() -> frozenset[str]:
    """Return all strings of the sources; in those with values, each value as "{}"."""
    found = set()
    for node in (node for tree in trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        if isinstance(node, ast.JoinedStr):
            found.add("".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values))
    return frozenset(found)


def test_every_text_is_used() -> None:
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


def test_every_text_that_is_used_exists() -> None:
    keys = {key if section == "shared" else f"{section}.{key}" for section, found in ENGLISH.items() for key in found}
    said = {
        node.args[0].value
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say"
        if node.args and isinstance(node.args[0], ast.Constant)
    }
    assert len(said) > 200 and said <= keys


def test_an_english_text_is_written_once() -> None:
    found = [text for section in ENGLISH.values() for text in section.values()]
    assert len(found) == len(set(found))


def test_scripts_say_literals() -> None:
    """A template literal would be a text that nobody finds."""
    assert len(script_texts()) > 60
    assert not [script for script in SCRIPTS if re.search(r"say\(\s*`", script.read_text(encoding="utf-8"))]


def test_a_language_may_lack_texts_or_have_wrong_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "charts" / "words"
    folder.mkdir(parents=True)
    (folder / "en.toml").write_text((ROOT / "charts" / "words" / "en.toml").read_text("utf-8"), "utf-8")
    monkeypatch.setattr(texts, "ROOT", tmp_path)
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "xx")
    assert say("layer_head", layer=1, head=2) == "layer 1, head 2" and not browser_words(), "no file"
    (folder / "xx.toml").write_text(
        '[shared]\nlayer_head = "{other}"\nadds = "+"\n[browser]\n"head {head}" = "{other}"\n"step" = "xx"\n', "utf-8"
    )
    texts_of = figure_texts.read_texts(tmp_path, "figures", "xx")
    assert texts_of["shared"]["layer_head"] == "layer {layer}, head {head}", "other placeholders"


def test_names_of_the_library_are_localized_and_tokens_are_not(in_french: None) -> None:
    for english, french in {
        "3 self-attention": "3 auto-attention",
        "encoder layer 2": "encodeur, couche 2",
        "2 β of self": "2 β de self",
        "the self-attention of layer 12": "l’auto-attention de la couche 12",
    }.items():
        assert localize(english) == french
    for same in ("layer x", "kitchen layer 2", "adds up", "·the", ""):
        assert localize(same) == same


def test_a_notebook_is_in_english() -> None:
    assert (
        localize("3 self-attention") == "3 self-attention" and say("layer_head", layer=1, head=2) == "layer 1, head 2"
    )


def test_errors_are_english_and_name_no_folder_of_a_public_server(
    in_french: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure_texts, "without_folders", lambda text: text.replace("/srv", "…"))
    assert problem_text(CheckpointError("/srv/a is not a directory")) == "…/a is not a directory"
    assert problem_text(InputError("There is no class “/srv”.")) == "There is no class “/srv”."
    assert problem_text(ValueError()) == "ValueError"


def test_notes_are_said_in_french(tiny_checkpoint: Callable, in_french: None) -> None:
    notes = [
        note
        for pads in (1, 2)
        for note in transformer.trace(tiny_checkpoint("translator"), "A cat.", source_pads=pads, target_pads=pads).notes
    ]
    assert len(notes) >= 4 and all("jeton" in localize(note) for note in notes)
    stopped = localize("The output did not end within 40 tokens; it was stopped there.")
    assert stopped.startswith("La sortie n’était pas finie après 40 jetons")


def test_what_is_said_while_waiting_is_in_the_language_of_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken: list[str] = []
    monkeypatch.setattr(store, "runs_a_script", lambda: True)
    monkeypatch.setattr(store.st, "spinner", spoken.append)
    store._show_waiting("wait.search")
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")
    store._show_waiting("wait.search")
    assert spoken == ["Searching …", "Recherche …"]
    with pytest.raises(KeyError):
        store._show_waiting("wait.nothing")


def test_what_is_said_while_waiting_is_named_and_can_be_translated() -> None:
    sources = [file.read_text("utf-8") for folder in ("ui", "views") for file in sorted((ROOT / folder).rglob("*.py"))]
    found = {name for source in sources for name in re.findall(r'\bwait="wait\.(\w+)"', source)}
    assert len(found) > 8
    for language in languages():
        assert found <= set(read_texts(texts.ROOT, "common", language)["wait"]), language
    assert not [source for source in sources if "@st.cache_" in source], "what is said there is fixed when it is read"
