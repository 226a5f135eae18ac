"""Sentences of transformer/ and texts that are given before anybody is served, in the language of who reads them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import transformer
from transformer import InputError
from transformer.analysis.heads.corpus_roles import corpus_roles
from transformer.toy.tasks import letter_ids
from ui.words.phrases import said, speaker_of
from ui.words.texts import Spoken

TEXTS = Path(__file__).resolve().parents[2] / "ui" / "words"
LONG = "word " * 200


def problems(tiny_checkpoint: Callable) -> dict[str, Callable[[], object]]:
    """One call for every sentence that an ``InputError`` may hold where a page asks the model."""
    translator, gpt = tiny_checkpoint("translator"), tiny_checkpoint("gpt")
    return {
        "La phrase est vide": lambda: transformer.trace(translator, "  "),
        "La cible est vide": lambda: transformer.trace(translator, "A cat.", target=" "),
        "La phrase compte": lambda: transformer.trace(translator, LONG),
        "de remplissage)": lambda: transformer.trace(translator, LONG, source_pads=3),
        "Le texte compte": lambda: transformer.trace(gpt, LONG),
        "La cible compte": lambda: transformer.trace(translator, "A cat.", target=LONG),
        "plus de place pour écrire": lambda: transformer.decode(gpt, "cat " * 20, forced="cat " * 40),
        "Le mot a 99 lettres": lambda: letter_ids("a" * 99),
        "n’a pas de jeton pour é": lambda: letter_ids("thé"),
        "tiny-gpt ne peut lire aucune": lambda: corpus_roles(gpt, [LONG, " "]),
    }


def test_what_a_model_cannot_take_is_said_in_french(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    for french, ask in problems(tiny_checkpoint).items():
        with pytest.raises(InputError) as error:
            ask()
        assert said(error.value) == str(error.value)
        with monkeypatch.context() as speaking:
            speaking.setattr("ui.words.texts._language_of_run", lambda: "fr")
            assert french in said(error.value), str(error.value)


def test_notes_are_said_in_french(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [
        note
        for pads in (1, 2)
        for note in transformer.trace(tiny_checkpoint("translator"), "A cat.", source_pads=pads, target_pads=pads).notes
    ]
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")
    assert len(notes) >= 4 and all("jeton" in said(note) for note in notes)
    assert said("Something else.") == "Something else."


def test_the_numbers_are_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")
    sentence = "The answer did not end within 40 tokens; it was stopped there."
    assert said(sentence).startswith("La réponse n’était pas finie après 40 jetons")


def test_the_longest_entry_comes_first_and_what_is_unknown_stays() -> None:
    say = speaker_of({"{a} below": "sous {a}", "{a} just below": "juste sous {a}", "head": "tête"})
    assert say("x just below") == "juste sous x" and say("x below") == "sous x" and say("head") == "tête"
    assert say("heads") is None and say("12") is None
    assert say("<b>head</b><br>12<br>x below<extra></extra>") == "<b>tête</b><br>12<br>sous x<extra></extra>"


def test_the_english_errors_say_what_is_there() -> None:
    table = tomllib.loads((TEXTS / "en" / "errors.toml").read_text(encoding="utf-8"))
    assert all(english == same for english, same in table.items())


def test_what_is_said_while_waiting_is_in_the_language_of_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit.string_util import clean_text  # what st.spinner does to its text

    text = Spoken("wait.search")
    assert isinstance(text, str) and text[:] == "Searching …" and clean_text(text) == "Searching …"
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")
    assert clean_text(text) == "Recherche …"
    with pytest.raises(KeyError):
        Spoken("wait.nothing")


def test_every_spinner_can_be_translated() -> None:
    import re

    root = TEXTS.parents[1]
    files = [file for folder in ("ui", "views") for file in sorted((root / folder).rglob("*.py"))]
    found = [said for file in files for said in re.findall(r"show_spinner=([^,)\n]+)", file.read_text("utf-8"))]
    assert len(found) > 10 and all(one == "False" or one.startswith('Spoken("wait.') for one in found), found
