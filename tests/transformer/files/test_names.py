"""Checkpoints by name: the caches of Hugging Face, Ollama and LM Studio, as these programs write them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.foreign_checkpoints import foreign_checkpoint
from tests.transformer.families.gguf_files import token_keys, write_gguf
from tests.transformer.families.hugging_face import build
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
def ollama(gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``ollama:tiny`` and ``ollama:tiny:q8``, as Ollama stores them."""
    folder = tmp_path / "ollama"
    monkeypatch.setenv("OLLAMA_MODELS", str(folder))
    digest = hashlib.sha256(gguf.read_bytes()).hexdigest()
    manifests = folder / "manifests" / "registry.ollama.ai" / "library" / "tiny"
    manifests.mkdir(parents=True)
    (folder / "blobs").mkdir()
    shutil.copy(gguf, folder / "blobs" / f"sha256-{digest}")
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "0" * 64},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"},
    ]
    for tag in ("latest", "q8"):
        (manifests / tag).write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return folder


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


def test_ollamas_models_by_name(ollama: Path) -> None:
    assert set(found_names()) == {"ollama:tiny", "ollama:tiny:q8"}
    blob = next((ollama / "blobs").iterdir())
    assert resolve("ollama:tiny") == resolve("ollama:tiny:q8") == blob
    assert load("ollama:tiny").config.family == "gpt2"


@pytest.mark.parametrize("name", ["ollama:none", "ollama:tiny:none", "ollama:", "ollama:../../etc", "ollama:a/b/c"])
def test_what_ollama_does_not_keep(ollama: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="Ollama has no '"):
        load(name)


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "{}", '{"layers": [3]}', '{"layers": []}', '{"layers": 7}']
    + [
        json.dumps({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": digest}]})
        for digest in ("sha256:../../../etc/passwd", "sha256:" + "0" * 64, 7)
    ],
)
def test_a_manifest_that_lies(ollama: Path, manifest: str) -> None:
    (ollama / "manifests" / "registry.ollama.ai" / "library" / "tiny" / "latest").write_text(manifest)
    with pytest.raises(CheckpointError, match="Ollama has no 'ollama:tiny'"):
        resolve("ollama:tiny")


def test_models_of_the_hub_by_name_without_network(hub: Path) -> None:
    assert set(found_names()) == {"me/mine", "me/packed"}
    assert load("me/mine").config.family == load("me/packed").config.family == "gpt2"
    assert resolve("me/mine").parent.parent.name == "models--me--mine"
    with pytest.raises(CheckpointError, match="download it: python -m transformer fetch you/none"):
        load("you/none")


def test_lm_studios_folder_by_name(gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_STUDIO_MODELS", str(tmp_path / "studio"))
    model = tmp_path / "studio" / "me" / "tiny-GGUF"
    model.mkdir(parents=True)
    shutil.copy(gguf, model)
    assert found_names() == ("lmstudio:me/tiny-GGUF",)
    assert resolve("lmstudio:me/tiny-GGUF") == model / gguf.name
    for name in ("lmstudio:me/none", "lmstudio:../studio/me/tiny-GGUF"):
        with pytest.raises(CheckpointError, match="LM Studio has no"):
            resolve(name)


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
