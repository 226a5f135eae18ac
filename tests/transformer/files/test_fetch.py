"""``fetch`` with a local hub: the size is printed first, and nothing is downloaded without consent."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.foreign_checkpoints import foreign_checkpoint
from transformer.__main__ import main

hub = pytest.importorskip("huggingface_hub")


@pytest.fixture
def downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders with downloads. The hub has ``me/mine`` and a pickle, ``me/pickled``."""
    origin, found = foreign_checkpoint("hf-gpt2", tmp_path / "hub"), []

    def files(name: str, **_: object) -> SimpleNamespace:
        if name not in ("me/mine", "me/pickled"):
            raise OSError("404: no such repository\nRequest ID: 1")
        stored = [SimpleNamespace(rfilename=file.name, size=file.stat().st_size) for file in origin.iterdir()]
        more = [SimpleNamespace(rfilename=name, size=10**9) for name in ("pytorch_model.bin", "run.py", "onnx/a.json")]
        known = [*stored, *more] if name == "me/mine" else more
        return SimpleNamespace(siblings=known, sha="0" * 40)

    def download(name: str, file: str, *, revision: str, local_dir: Path, **_: object) -> str:
        assert revision == "0" * 40
        assert file not in ("pytorch_model.bin", "run.py", "onnx/a.json")
        local_dir.mkdir(parents=True, exist_ok=True)
        if local_dir not in found:
            found.append(local_dir)
        return str(shutil.copy(origin / file, local_dir / file))

    monkeypatch.setattr(hub, "HfApi", lambda **_: SimpleNamespace(model_info=files))
    monkeypatch.setattr(hub, "hf_hub_download", download)
    return found


def test_the_size_comes_first_and_the_files_go_into_the_folder_that_the_app_lists(
    downloaded: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", f"{tmp_path / 'listed'}:{tmp_path / 'other'}")
    asked = []

    def answer(question: str) -> str:
        asked.append((question, capsys.readouterr().err, list(downloaded)))
        return "y"

    monkeypatch.setattr("builtins.input", answer)
    assert main(["fetch", "me/mine"]) == 0
    ((question, said, before),) = asked
    assert "me/mine: 5 files, 0 MB" in said and "[y/N]" in question and not before
    assert downloaded == [tmp_path / "listed" / "mine" / ".unfinished"]
    assert not downloaded[0].exists()
    assert "listed/mine  " in capsys.readouterr().out  # its fingerprint follows, because it was opened


@pytest.mark.parametrize("answer", ["", "no", EOFError()])
def test_who_does_not_agree_downloads_nothing(
    downloaded: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    def asked(question: str) -> str:
        if isinstance(answer, EOFError):
            raise answer
        return str(answer)

    monkeypatch.setattr("builtins.input", asked)
    assert main(["fetch", "me/mine", "--output", str(tmp_path)]) == 2
    assert not downloaded


@pytest.mark.parametrize(
    ("name", "words"),
    [("me/pickled", "has no safetensors files; pickles are not opened"), ("me/nothing", "fetched: 404: no such")],
)
def test_what_cannot_be_fetched_is_one_sentence(
    downloaded: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture, name: str, words: str
) -> None:
    assert main(["fetch", name, "--yes", "--output", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1 and not downloaded
