"""A folder of a translated family, run by its own code: by a button, by a typed name, in a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from tests.pages.conftest import is_fine, open_path, said
from tests.transformer.families.test_lora import write_adapter
from transformer.__main__ import main
from ui.compute import loading
from ui.words.texts import page_text

pytest.importorskip("transformers")


def test_a_button_opens_the_same_folder_by_its_own_code(
    open_app, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign_checkpoint("hf-gpt2", tmp_path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    monkeypatch.setattr(loading, "_typed", {})
    app = open_app("checkpoint", checkpoint="hf-gpt2")
    app = app.button(key="run by own code").click().run()
    is_fine(app)
    name = app.selectbox(key="sidebar checkpoint").value
    assert name == "transformers:hf-gpt2"
    assert not loading.load_checkpoint(name).model.own_code and loading.load_checkpoint("hf-gpt2").model.own_code
    assert page_text("checkpoint")["own_code_runs"] in said(app)
    assert not [button for button in app.button if button.key == "run by own code"]


def test_an_adapter_opens_by_its_path(open_app, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign_checkpoint("hf-llama", tmp_path)
    write_adapter(tmp_path / "adapter", tmp_path / "hf-llama", "q_proj")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    monkeypatch.setattr(loading, "_typed", {})
    app = open_app("checkpoint", checkpoint="hf-llama")
    app = open_path(app, tmp_path / "adapter")
    is_fine(app)
    assert app.selectbox(key="sidebar checkpoint").value == "adapter"
    assert page_text("checkpoint")["adapter"].split("{base}")[1] in said(app)


def test_a_command_takes_the_same_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign_checkpoint("hf-gpt2", tmp_path)
    answers = []
    for name in (f"{tmp_path}/hf-gpt2", f"transformers:{tmp_path}/hf-gpt2"):
        assert main(["inspect", name, "The cat sat.", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    roles = [[(head["layer"], head["head"], head["role"]) for head in answer["heads"]] for answer in answers]
    assert roles[0] and roles[0] == roles[1]
    assert not transformer.load(f"transformers:{tmp_path}/hf-gpt2").model.own_code
