"""The Checkpoint page of a guest: whose code computes it, its source, the tensors that are not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import open_by_address
from tests.foreign_checkpoints import foreign_checkpoint
from tests.pages.conftest import is_fine, open_path, said
from tests.transformer.guests.test_lora import write_adapter
from ui.compute import loading
from ui.words.texts import page_text


def test_the_page_names_the_class_that_computes_and_shows_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign_checkpoint("hf-bert", tmp_path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = open_by_address("checkpoint", {"checkpoint": "hf-bert"})
    assert not app.exception
    assert any("`BertForMaskedLM` of transformers" in text.value and "**bert**" in text.value for text in app.markdown)
    assert any(" · bert · 3 " in text.value for text in app.sidebar.caption)
    assert any("4 tensors are not read" in text.value and "relationship" in text.value for text in app.caption)
    assert any("equal those that its own code returns on 7 and" in text.value for text in app.markdown)
    folds = [fold.proto.id for fold in app.expander]
    assert any(fold.endswith("code BertForMaskedLM-BertLayer-BertSelfAttention") for fold in folds)


def test_several_folders_are_listed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in (("one", "hf-gpt2"), ("two", "hf-bert")):
        foreign_checkpoint(name, tmp_path / place)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    app = open_by_address("checkpoint", {"checkpoint": "hf-bert"})
    assert app.selectbox("sidebar checkpoint").options == ["hf-bert", "hf-gpt2"]
    assert any("**bert**" in text.value for text in app.markdown)


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
