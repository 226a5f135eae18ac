"""Models of many languages or tasks: their settings are below the sentence and in links."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.foreign_checkpoints import MANY_LANGUAGES, foreign_checkpoint
from tests.pages.conftest import codes
from transformer.files.languages import languages_of, with_languages

TASKS = {"summarization": {"prefix": "summarize: "}, "translation": {"prefix": "translate English to French: "}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("languages")
    for name in (*MANY_LANGUAGES, "hf-t5"):
        foreign_checkpoint(name, path)
    config = path / "hf-t5" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"task_specific_params": TASKS}))
    return path


@pytest.fixture
def opened(open_app: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    return open_app


def choose(app: AppTest, label: str, value: str) -> AppTest:
    next(box for box in app.selectbox if box.label == label).set_value(value).run()
    assert not app.exception and not app.error, [error.value for error in app.error]
    return app


def test_the_languages_are_chosen_beside_the_sentence(opened: Callable, folder: Path) -> None:
    app = opened("masks", checkpoint="hf-m2m100")
    choose(choose(app, "Writes", "fr"), "Reads", "de")
    assert (app.query_params["reads"], app.query_params["writes"]) == ("de", "fr")
    snippet = next(code for code in codes(app) if "with_languages(" in code)
    assert "checkpoint = with_languages(checkpoint, source='de', target='fr')" in snippet
    loaded = transformer.load(folder / "hf-m2m100")
    spoken = with_languages(loaded, source="de", target="fr")
    languages = spoken.tokenizer.languages
    trace = transformer.trace(spoken, "The cat sat.", "Le chat.")
    assert trace.source.ids[0] == languages["de"] and trace.target.ids[1] == languages["fr"]
    assert loaded.framing.before == (languages["en"],)  # the open one stays as it is


def test_a_link_keeps_the_language_and_an_unknown_one_is_said(opened: Callable) -> None:
    app = opened("masks", checkpoint="hf-marian-many", writes="fra", reads="xx")
    assert next(box for box in app.selectbox if box.label == "Writes").value == "fra"
    assert not [box for box in app.selectbox if box.label == "Reads"]  # Marian does not receive it
    assert any("has no language 'xx'" in caption.value for caption in app.caption)
    assert "with_languages(checkpoint, target='fra')" in "".join(codes(app))
    app.selectbox(key="sidebar checkpoint").set_value("hf-t5").run()
    assert "writes" not in app.query_params and not app.error


def test_tasks_of_t5_begin_the_sentence(opened: Callable, folder: Path) -> None:
    assert languages_of(transformer.load(folder / "hf-t5")) == ((), ())
    app = opened("masks", checkpoint="hf-t5", sentence="The cat sat.")
    choose(app, "Task", "summarize: ")
    assert app.query_params["sentence"] == "summarize: The cat sat."
    choose(app, "Task", "translate English to French: ")
    assert app.query_params["sentence"] == "translate English to French: The cat sat."
    assert next(box for box in app.selectbox if box.label == "Task").value == "translate English to French: "
