"""Errors about an upload or a lesson file are complete French sentences, wherever the problem is."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT
from tests.ui.marked import marked
from tests.ui.test_lessons import GOOD, written
from transformer.text.foreign_messages import LONGEST
from ui.compute import uploads
from ui.shell.guidance import lessons as lesson_files
from ui.shell.guidance.lessons import read_lesson
from ui.words.catalogues import catalogue, translate
from ui.words.texts import ROOT as TEXTS
from ui.words.translations import read_texts

FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")
ENGLISH_WORDS = re.compile(r"\b(the|is|are|has|it|its|of|must|read|taken|with|needs|lacks|write|does|not|or|no)\b")


@pytest.fixture
def in_french(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")


# Every message in the code

FILES_OF_ERRORS = (
    "transformer/files/received_files.py",
    "transformer/files/checkpoints.py",
    "transformer/files/snapshots.py",
    "transformer/text/tokenizer.py",
    "transformer/text/tokenizer_files.py",
    "transformer/heads/role_files.py",
    "transformer/config.py",
    "transformer/runs/edit_specs.py",
    "ui/shell/guidance/lessons.py",
    "views/lessons/worksheet.py",
)
ELSEWHERE = {  # ValueErrors that no page shows as a message
    "transformer/text/tokenizer.py": {"train"},
    "transformer/files/checkpoints.py": {"save_weights"},
    "transformer/files/snapshots.py": {"write_snapshot"},
    "transformer/heads/role_files.py": {"_roles_from", "_check_known"},
    "transformer/runs/edit_specs.py": {"check", "_check_direction", "_mask_edit", "_number", "_pairs"},
}


@pytest.mark.parametrize("file", FILES_OF_ERRORS)
def test_every_refusal_is_marked_where_it_is_raised(file: str) -> None:
    """An f-string in a ``ValueError`` could not be translated."""
    functions = [
        node
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name not in ELSEWHERE.get(file, ())
    ]
    raised = [node.exc for function in functions for node in ast.walk(function) if isinstance(node, ast.Raise)]
    assert not [ast.unparse(error) for error in raised if error and ast.unparse(error).startswith("ValueError(")]


def test_there_are_sentences() -> None:
    sentences = [template for template, file in marked().items() if file in FILES_OF_ERRORS]
    assert len(sentences) > 70 and all(
        any(name in one for one in sentences) for name in ("pickle", "[[step]]", "d_head")
    )
    assert all(catalogue("fr")[one] != one for one in sentences if re.search(r"[a-z]{2} ", one))


# In their original form


def refusals(files: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Return the message, and the files of an upload that is refused with it."""
    config, weights = json.loads(files["config.json"]), files["model.safetensors"]
    tokenizer = json.loads(files["tokenizer.json"])
    broken = load(weights)
    broken["decoder.final_norm.bias"] = torch.full((24,), torch.nan)
    fewer = {name: tensor for name, tensor in load(weights).items() if name != "decoder.final_norm.bias"}

    def configured(**values: object) -> dict[str, bytes]:
        return {"config.json": json.dumps({**config, **values}).encode()}

    return {
        "'model.pt' est un pickle, qui peut exécuter n’importe quel code": {"model.pt": b"\x80\x04."},
        "'../config.json' n’est pas un fichier de checkpoint": {"../config.json": b"{}"},
        "config.json fait 65 537 octets ; au plus 65 536 sont acceptés": {"config.json": b" " * 65_537},
        "config.json n’est pas du JSON valide : il manque une valeur à la ligne 1, colonne 1": {"config.json": b""},
        "il est imbriqué trop profondément": {"config.json": b"[" * 60_000},
        "config.json doit contenir un objet JSON": {"config.json": b"null"},
        "max_length est 65536 ; au plus 4096 est accepté": configured(max_length=65_536),
        "config.json : d_model est 24, que 7 têtes ne divisent pas": configured(n_heads=7),
        "config.json : kind est 'x' ; choisissez parmi": configured(kind="x"),
        "nombres mais la configuration en demande": configured(d_model=10**12, d_ff=10**12 + 2, n_heads=1),
        "mais (50, 24) d’après la configuration ; ": configured(d_ff=50),
        "ce checkpoint : le tokenizer a 400 entrées": configured(vocabulary_size=10**9),
        "des nombres qui ne sont pas finis (NaN ou infini)": {"model.safetensors": save(broken)},
        "il y manque decoder.final_norm.bias (24,)": {"model.safetensors": save(fewer)},
        "et 35 de plus": {"model.safetensors": save({"a": torch.zeros(2)})},
        "n’est pas un fichier safetensors complet": {"model.safetensors": weights[: len(weights) // 2]},
        "complet : il finit trop tôt": {"model.safetensors": b""},
        "octets, plus que le fichier": {"model.safetensors": (2**62).to_bytes(8, "little") + weights[8:]},
        "tokenizer.json n’est pas un tokenizer lisible : ce n’est pas du JSON valide (il manque": {
            "tokenizer.json": b"{"
        },
        "seul le BPE par octets simple est lu": {
            "tokenizer.json": json.dumps({**tokenizer, "normalizer": {"type": "NFC"}}).encode()
        },
    }


def plain(text: str) -> str:
    return text.replace("\u00a0", " ").replace("\u202f", " ").replace("\\", "")


def test_a_refused_upload_is_refused_in_french(
    checkpoints_folder: Path, tmp_path: Path, in_french: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: (checkpoints_folder / "tiny-gpt" / name).read_bytes() for name in FILES}
    for french, changed in refusals(files).items():
        with pytest.raises(ValueError) as error:
            uploads.receive({**files, **changed}, tmp_path / "kept")
        assert french in plain(translate(error.value)), str(error.value)
        assert not ENGLISH_WORDS.search(translate(error.value)), translate(error.value)


def test_the_page_refuses_in_french(
    open_app: Callable[..., AppTest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "uploads_folder", lambda: tmp_path / "uploads")
    app = open_app("checkpoint", language="fr")
    for sent, french in (
        ({"model.pt": b"\x80\x04."}, "est un pickle"),
        ({"config.json": b"{}"}, "model.safetensors, tokenizer.json manque"),
    ):
        app.file_uploader[0].set_value([(name, content, "application/octet-stream") for name, content in sent.items()])
        own = read_texts(TEXTS, "checkpoint", "fr")["own_open"]
        next(button for button in app.button if button.label == own).click().run()
        assert not app.exception and french in plain(app.warning[0].value)


@pytest.mark.parametrize(
    ("old", "new", "french"),
    [
        (
            'title = "T"',
            'title = "T',
            "n’est pas du TOML valide : il y a un caractère interdit",
        ),
        (
            'title = "T"',
            "title = ",
            "une valeur ne convient pas (ligne 2, colonne 9). Souvent, il manque un guillemet.",
        ),
        ('title = "T"', 'title "T"', "il manque '=' après un nom"),
        ("minutes = 5", "minuts = 5", "lessons/en/01-mine.toml a 'minuts' ; vouliez-vous dire minutes ?"),
        ("minutes = 5", "zzz = 5", "sont connus : title, aim"),
        ('page = "tokens"', 'page = "token"', "01-mine.toml, étape 2 : il n’y a pas de page 'token'"),
        ('answer = "b"', 'answer = "a"', "étape 1 : deux réponses proposées ont le même texte"),
        (
            "focus = { head = 1 }",
            "focus = { head = -1 }",
            "étape 1, focus : head est -1 ; ce doit être un nombre entier",
        ),
        ("focus = { head = 1 }", 'edit = "zero"', "edit est 'zero', ce qui n’a pas de sens : 'zero' n’est pas une"),
        (
            "focus = { head = 1 }",
            'edit = "zero:encoder.0.self"',
            "ce qu’il faut à zero : une tête de self ou de cross, par exemple",
        ),
        (GOOD[GOOD.index("[[step]]") :], "", "n’a pas d’étapes ; écrivez chacune sous une ligne [[step]]"),
    ],
)
def test_a_broken_lesson_is_named_in_french(tmp_path: Path, in_french: None, old: str, new: str, french: str) -> None:
    with pytest.raises(ValueError) as error:
        read_lesson(written(tmp_path, GOOD.replace(old, new, 1)))
    assert french in plain(translate(error.value)), translate(error.value)
    assert not ENGLISH_WORDS.search(translate(error.value)), translate(error.value)


def test_the_page_names_it_in_french(
    open_app: Callable[..., AppTest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, GOOD.replace("minutes = 5", "minuts = 5"))
    monkeypatch.setattr(lesson_files, "LESSONS", tmp_path)
    app = open_app("lessons", language="fr")
    assert not app.exception
    assert "fichier de leçon est illisible : lessons/en/01-mine.toml a 'minuts'" in plain(app.warning[0].value)


def test_what_is_too_long_is_not_searched(in_french: None) -> None:
    """A file may contain any text: one made to be slow to search is shown unchanged."""
    sentence = "Expecting {} delimiter: line 1 column 1 (char 0)"
    assert translate(ValueError(sentence.format("x"))) != sentence.format("x")
    assert translate(ValueError(sentence.format("x" * LONGEST))) == sentence.format("x" * LONGEST)
