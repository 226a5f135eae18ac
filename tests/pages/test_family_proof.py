"""The Checkpoint page of a third-party model: its family, the mapping of tensors, the comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import open_by_address
from tests.foreign_checkpoints import foreign_checkpoint
from tests.transformer.guests.tiny_image_guests import image_checkpoint

pytest.importorskip("transformers")


def test_the_page_names_the_family_and_proves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign_checkpoint("hf-bert", tmp_path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = open_by_address("checkpoint", {"checkpoint": "hf-bert"})
    assert any("**bert**" in text.value for text in app.markdown)
    assert any(" · bert · 3 " in text.value for text in app.sidebar.caption)
    assert not app.success
    app.button("verify checkpoint").click().run()
    assert not app.exception
    (proof,) = app.success
    assert "the same attention maps" in proof.value


def test_a_model_that_reads_images_is_compared_on_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image_checkpoint("siglip", tmp_path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = open_by_address("checkpoint", {"checkpoint": "siglip"})
    app.button("verify checkpoint").click().run()
    assert not app.exception
    (proof,) = app.success
    assert "the same pixels" in proof.value and "over 4 images" in proof.value


def test_without_transformers_the_command_stands_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign_checkpoint("hf-gpt2", tmp_path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    monkeypatch.setattr("views.checkpoint.family_view.find_spec", lambda name: None)
    app = open_by_address("checkpoint", {"checkpoint": "hf-gpt2"})
    wanted = f"python -m transformer verify {tmp_path / 'hf-gpt2'}"
    assert [code.value for code in app.code if "verify" in code.value] == [wanted], "where the folder really lies"


def test_several_folders_are_listed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in (("one", "hf-gpt2"), ("two", "hf-bert")):
        foreign_checkpoint(name, tmp_path / place)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    app = open_by_address("checkpoint", {"checkpoint": "hf-bert"})
    assert app.selectbox("sidebar checkpoint").options == ["hf-bert", "hf-gpt2"]
    assert any("**bert**" in text.value for text in app.markdown)
