"""Pages with a GGUF file opened by its path or by another program's name, listed by its origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.conftest import codes, is_fine, open_path, said
from tests.pages.test_stretched_positions import ANGLES
from tests.transformer.guests.gguf_files import token_keys, write_gguf
from tests.transformer.guests.hugging_face import build
from tests.transformer.text.foreign_folders import byte_level
from ui.compute import loading

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


def test_a_file_that_is_replaced_cut_or_removed_while_it_is_open(
    open_app, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["overview", "tokens", "positions", "attention", "heads", "feed_forward", "decoding", "masks"]
)
def test_every_page_shows_it(opened, open_app, gguf: Path, page: str) -> None:
    more = ANGLES if page == "positions" else {}
    app = open_app(page, checkpoint="tiny.gguf", sentence="The cat sat.", **more)
    is_fine(app)
    if page == "positions":
        assert "A GGUF file, for instance, stores such factors for the stretching of Llama 3" in said(app)
    if page == "masks":
        assert any(f'transformer.load("{gguf.resolve()}")' in code for code in codes(app))


def test_a_name_that_is_not_here_says_how_to_fetch_it(open_app, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_typed", {})
    app = open_path(open_app("checkpoint"), "nobody/nothing")
    assert any(
        "python -m transformer fetch nobody/nothing" in warning.value.replace("\\", "") for warning in app.warning
    )
