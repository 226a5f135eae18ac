"""Checkpoints by name: the cache of the Hugging Face hub, and folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.foreign_checkpoints import foreign_checkpoint
from tests.transformer.guests.gguf_files import token_keys, write_gguf
from tests.transformer.guests.hugging_face import build
from tests.transformer.text.foreign_folders import byte_level
from transformer import CheckpointError, load
from transformer.files.names import found_names, resolve

pytest.importorskip("gguf")


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    backend = byte_level(special=("<|endoftext|>",))
    keys = token_keys(backend, "gpt2", pre="gpt-2", eos_token_id=0)
    model = build("gpt2", vocab_size=backend.get_vocab_size())
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", model, tokens=keys)


@pytest.fixture
def hub(gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``me/mine`` (safetensors), ``me/packed`` (GGUF), ``me/other`` (an unknown family)."""
    from huggingface_hub import constants

    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(folder))
    for name in ("mine", "packed", "other"):
        place = folder / f"models--me--{name}"
        (place / "refs").mkdir(parents=True)
        (place / "refs" / "main").write_text("0" * 40)
        snapshot = place / "snapshots" / ("0" * 40)
        snapshot.mkdir(parents=True)
        if name == "mine":
            shutil.copytree(foreign_checkpoint("hf-gpt2", tmp_path / "made"), snapshot, dirs_exist_ok=True)
        elif name == "packed":
            shutil.copy(gguf, snapshot)
        else:
            (snapshot / "config.json").write_text('{"model_type": "theirs"}')
    return folder


def test_models_of_the_hub_by_name_without_network(hub: Path) -> None:
    assert set(found_names()) == {"me/mine", "me/packed", "me/other"}, "whether it opens, only transformers knows"
    with pytest.raises(CheckpointError):
        load("me/other")
    assert load("me/mine").config.family == load("me/packed").config.family == "gpt2"
    assert resolve("me/mine").parent.parent.name == "models--me--mine"
    with pytest.raises(CheckpointError, match="download it: python -m transformer fetch you/none"):
        load("you/none")


def test_a_folder_with_a_gguf_file(gguf: Path, tmp_path: Path) -> None:
    shutil.copy(gguf, tmp_path / "one.gguf")
    assert resolve(tmp_path) == tmp_path / "one.gguf"
    shutil.copy(gguf, tmp_path / "mmproj-one.gguf")
    assert resolve(tmp_path) == tmp_path / "one.gguf"
    shutil.copy(gguf, tmp_path / "two.gguf")
    with pytest.raises(CheckpointError, match=r"holds several GGUF files; name one of them: one\.gguf, two\.gguf"):
        load(tmp_path)


def test_a_path_stays_a_path(tmp_path: Path) -> None:
    assert resolve(tmp_path / "nothing") == tmp_path / "nothing"
    assert resolve("no/such/folder") == Path("no/such/folder")
    assert resolve("checkpoints/none") == Path("checkpoints/none")
