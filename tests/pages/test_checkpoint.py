"""The Checkpoint page: whose code computes, files opened by their path, changes to open files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import open_by_address
from tests.foreign_checkpoints import foreign_checkpoint, write_adapter
from tests.pages.conftest import codes, is_fine, open_path, said
from tests.transformer.guests.gguf_files import token_keys, write_gguf
from tests.transformer.guests.hugging_face import build
from tests.transformer.text.foreign_folders import byte_level
from ui.compute import loading


def test_a_guest_is_named_with_the_class_that_computes_it_and_its_source(tmp_path, monkeypatch) -> None:
    for place, name in (("one", "hf-gpt2"), ("two", "hf-bert")):
        foreign_checkpoint(name, tmp_path / place)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    app = open_by_address("checkpoint", {"checkpoint": "hf-bert"})
    is_fine(app)
    assert app.selectbox("sidebar checkpoint").options == ["hf-bert", "hf-gpt2"], "of both folders"
    assert "`BertForMaskedLM`" in said(app) and "**bert**" in said(app)
    assert all(f"class {name}(" in codes(app)[-1] for name in ("BertForMaskedLM", "BertLayer", "BertSelfAttention"))


def test_its_code_is_shown_beside_a_text_that_the_model_cannot_take(open_app) -> None:
    app = open_app("checkpoint", checkpoint="tiny-gpt", sentence="word " * 2000)
    assert "ModelConfig" in codes(app)[-1]
    is_fine(app)


def test_an_adapter_opens_by_its_path(open_app, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign_checkpoint("hf-llama", tmp_path)
    write_adapter(tmp_path / "adapter", tmp_path / "hf-llama", "q_proj")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    monkeypatch.setattr(loading, "_typed", {})
    app = open_app("checkpoint", checkpoint="hf-llama")
    app = open_path(app, tmp_path / "adapter")
    is_fine(app)
    assert app.selectbox(key="sidebar checkpoint").value == "adapter"


pytest.importorskip("gguf")


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    backend = byte_level(special=("<s>", "</s>"))
    keys = token_keys(backend, "gpt2", pre="gpt-2", eos_token_id=1, bos_token_id=0)
    model = build("llama 3, biases", vocab_size=backend.get_vocab_size())
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", model, tokens=keys)


@pytest.fixture
def opened(open_app, gguf: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loading, "_typed", {})
    return open_path(open_app("checkpoint"), gguf)


def test_the_checkpoint_page_opens_it_by_its_path(opened, gguf: Path) -> None:
    is_fine(opened)
    box = opened.selectbox(key="sidebar checkpoint")
    assert box.value == "tiny.gguf" and "tiny.gguf (yours)" in box.options
    assert "blk." not in said(opened)


def test_a_file_that_is_replaced_cut_or_removed_while_it_is_open(open_app, gguf, tmp_path, monkeypatch) -> None:
    """The page shows the file's current numbers, names what it cannot read, and keeps the text."""
    monkeypatch.setattr(loading, "_typed", {})
    file, content = tmp_path / "mine.gguf", gguf.read_bytes()
    file.write_bytes(content)
    app = open_path(open_app("checkpoint"), file)
    is_fine(app)
    before = loading.load_checkpoint("mine.gguf").fingerprint

    changed = bytearray(content)
    changed[-20_000:-19_936] = bytes(64)  # changes bytes in the middle of a matrix
    (tmp_path / "next").write_bytes(changed)
    (tmp_path / "next").replace(file)
    is_fine(app.run())
    assert loading.load_checkpoint("mine.gguf").fingerprint != before

    (tmp_path / "next").write_bytes(content[: len(content) // 2])
    (tmp_path / "next").replace(file)
    app.run()
    (error,) = app.error
    assert not app.exception and "mine" in error.value and "it ends within" in error.value

    file.unlink()
    app.run()
    assert not app.exception and "mine" in app.error[0].value

    file.write_bytes(content)
    is_fine(app.run())
    assert loading.load_checkpoint("mine.gguf").fingerprint == before


def test_a_name_that_is_not_here_says_how_to_fetch_it(open_app, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_typed", {})
    app = open_path(open_app("checkpoint"), "nobody/nothing")
    assert any(
        "python -m transformer fetch nobody/nothing" in warning.value.replace("\\", "") for warning in app.warning
    )
