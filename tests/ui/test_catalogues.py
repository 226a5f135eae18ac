"""The library's messages in the reader's language: every marked template is in every catalogue."""

from __future__ import annotations

import ast
import copy
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import polib
import pytest

import transformer
from tests.conftest import ROOT
from tests.ui.marked import FOLDERS, SCRIPTS, calls_in, marked, marked_in_scripts
from transformer.text.message import Message
from ui.compute import store
from ui.words import texts
from ui.words.catalogues import BROWSER, MESSAGES, catalogue, translate
from ui.words.texts import languages
from ui.words.translations import placeholders, read_texts

FILES = [(code, domain) for code in languages() if code != "en" for domain in (MESSAGES, BROWSER)]
NARROW_SPACES = re.compile(r"[\w)»*`}] [;:!?»](?:\s|$)|« ")


# The catalogues


def entries_of(code: str, domain: str) -> polib.POFile:
    return polib.pofile(str(ROOT / "ui" / "words" / code / f"{domain}.po"))


def test_what_is_marked_is_a_literal_that_a_tool_can_find() -> None:
    """Except the few calls that only pass on a message that was marked elsewhere."""
    handed_on = [
        f"{path.relative_to(ROOT)}: {ast.unparse(call)}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for call in calls_in(path)
        if not (isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str))
        and ast.unparse(call.func) != "_"  # calls with a name that was marked elsewhere
    ]
    allowed = ("transformer/text/message.py",)
    assert not [call for call in handed_on if not call.startswith(allowed)]
    assert len(marked()) > 300


@pytest.mark.parametrize(("code", "domain"), FILES)
def test_a_catalogue_is_complete_and_nothing_in_it_is_stale(code: str, domain: str) -> None:
    entries, wanted = entries_of(code, domain), marked() if domain == MESSAGES else marked_in_scripts()
    translated = {entry.msgid for entry in entries.translated_entries()}
    missing = {template: file for template, file in wanted.items() if template not in translated}
    assert not missing, f"not translated in ui/words/{code}/{domain}.po: {missing}"
    assert {entry.msgid for entry in entries} <= wanted.keys(), "no source says this any longer"
    assert len(entries) == len({entry.msgid for entry in entries})
    assert catalogue(code, domain).keys() == translated, "what does not fit is left out"


@pytest.mark.parametrize(("code", "domain"), FILES)
def test_a_translation_has_the_placeholders_and_the_marks_of_english(code: str, domain: str) -> None:
    for entry in entries_of(code, domain):
        assert placeholders(entry.msgid) == placeholders(entry.msgstr), entry.msgid
        assert entry.msgstr.count("**") % 2 == 0 and entry.msgstr.count("`") == entry.msgid.count("`"), entry.msgid


def test_placeholders_have_names_and_nothing_else() -> None:
    assert not [one for one in marked() if re.sub(r"\{[a-z_]+\}", "", one).count("{") and placeholders(one)]


def test_scripts_say_templates_too() -> None:
    """A template literal would be a text that no tool finds."""
    assert len(marked_in_scripts()) > 60
    assert not [script for script in SCRIPTS if re.search(r"say\(\s*`", script.read_text(encoding="utf-8"))]


def test_french_is_french() -> None:
    """Not a copy: texts that are equal in both languages are names, symbols or words of both."""
    words = re.compile(r"[A-Za-z]{2,}")
    entries = [*entries_of("fr", MESSAGES), *entries_of("fr", BROWSER)]
    same = [entry.msgid for entry in entries if entry.msgid == entry.msgstr]
    assert not [one for one in same if len(words.findall(re.sub(r"\{[^{}]*\}", "", one))) > 3]
    assert not [entry.msgstr for entry in entries if NARROW_SPACES.search(entry.msgstr)]


def test_a_catalogue_that_is_broken_or_does_not_fit_leaves_english(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "ui" / "words" / "xx"
    folder.mkdir(parents=True)
    monkeypatch.setattr(texts, "ROOT", tmp_path)
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "xx")
    message = Message("{count} heads", count=3)
    assert translate(message) == "3 heads", "no catalogue"
    cases = (
        ('msgid "{count} heads"\nmsgstr "{count} hexx"\n', "3 hexx"),
        ('msgid "{count} heads"\nmsgstr "{other} hexx"\n', "3 heads"),
        ('msgid "{count} heads"\nmsgstr ""\n', "3 heads"),
        ('#, fuzzy\nmsgid "{count} heads"\nmsgstr "{count} hexx"\n', "3 heads"),
        ('msgid "{count} heads"\nmsgstr "unclosed\n', "3 heads"),
    )
    for when, (content, expected) in enumerate(cases, 1):
        (folder / "messages.po").write_text(content, encoding="utf-8")
        os.utime(folder / "messages.po", ns=(when, when))
        assert translate(message) == expected, content
    (folder / "messages.po").write_bytes(b"\xff\xfe")
    assert translate(message) == "3 heads"


# Messages


def test_a_message_reads_as_english_and_remembers_what_it_was_made_of() -> None:
    inner = Message("a head of self or cross")
    message = Message("{text} does not fit: {problem}", text="{x}", problem=inner)
    assert message == "{x} does not fit: a head of self or cross"
    assert message.template == "{text} does not fit: {problem}" and message.values["problem"] is inner
    for twin in (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):
        assert twin == message and (twin.template, twin.values) == (message.template, message.values)
    assert Message("{") == "{" and Message(message) is message


def test_only_the_template_is_translated_never_what_stands_in_it() -> None:
    table = {"head": "tête", "{name}: {problem}": "{name} : {problem}", "no head": "aucune tête"}
    message = Message("{name}: {problem}", name="head", problem=Message("no head"))
    assert message.translated(lambda template: table.get(template, template)) == "head : aucune tête"


def test_notes_are_said_in_french(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [
        note
        for pads in (1, 2)
        for note in transformer.trace(tiny_checkpoint("translator"), "A cat.", source_pads=pads, target_pads=pads).notes
    ]
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")
    assert len(notes) >= 4 and all("jeton" in translate(note) for note in notes)
    assert translate("Something else.") == "Something else."


def test_the_numbers_are_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")
    note = Message("The output did not end within {count} tokens; it was stopped there.", count=40)
    assert translate(note).startswith("La sortie n’était pas finie après 40 jetons")


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
