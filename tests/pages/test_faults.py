"""Checkpoint files that vanish, change or break while the app runs are reported in a sentence."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine
from transformer.training import run_state

COLUMNS = ",".join(run_state.COLUMNS).encode() + b"\n"
NONSENSE = {
    "empty": b"",
    "binary": bytes(range(256)) * 50,
    "one line": b"step\n",
    "other columns": b"a,b\n1,2\n",
    "no numbers": COLUMNS + b"x,y,z,a,b,c,d,e,f,g\n",
    "not finite": COLUMNS + b"nan,1,inf,1,1,1,1,1,1,1\n",
    "ragged": b"step,epoch\n1,2,3,4\n5\n",
    "JSON": b'{"a": [1, 2}',
    "other JSON": b'{"roles": 7, "sentences": {}, "heads": [[[]]]}',
    "deep": b"[" * 100_000,
    "HTML": b"<script>alert(1)</script>",
}


@pytest.fixture
def folder(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of the tiny checkpoints, which a test may break."""
    for path in checkpoints_folder.iterdir():
        shutil.copytree(path, tmp_path / path.name)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("content", NONSENSE)
@pytest.mark.parametrize(("file", "page"), [("history.csv", "training"), ("head_roles.json", "heads")])
def test_a_file_beside_the_weights_that_is_nonsense(
    open_app: Callable[..., AppTest], folder: Path, file: str, page: str, content: str
) -> None:
    (folder / "tiny-gpt" / file).write_bytes(NONSENSE[content])
    app = open_app(page, checkpoint="tiny-gpt", sentence="Hello there.")
    is_fine(app)
    if page == "training":
        assert "is not a complete history of a training run" in app.info[0].value


@pytest.mark.parametrize("content", ["empty", "binary", "HTML"])
def test_a_card_that_is_nonsense(open_app: Callable[..., AppTest], folder: Path, content: str) -> None:
    (folder / "tiny-gpt" / "README.md").write_bytes(NONSENSE[content])
    is_fine(open_app("checkpoint", checkpoint="tiny-gpt"))


@pytest.mark.parametrize("content", ["empty", "binary", "JSON"])
def test_a_snapshot_that_is_nonsense(open_app: Callable[..., AppTest], folder: Path, content: str) -> None:
    (folder / "tiny-gpt" / "snapshots").mkdir()
    for name in ("step-0.safetensors", "step-000010.safetensors", "x.safetensors", "10.safetensors"):
        (folder / "tiny-gpt" / "snapshots" / name).write_bytes(NONSENSE[content])
    app = open_app("training", checkpoint="tiny-gpt", sentence="Hello there.")
    assert not app.exception


def remove(folder: Path) -> None:
    shutil.rmtree(folder / "tiny-gpt")


def empty_weights(folder: Path) -> None:
    (folder / "tiny-gpt" / "model.safetensors").write_bytes(b"")


def other_config(folder: Path) -> None:
    (folder / "tiny-gpt" / "config.json").write_text("{}")


def no_tokenizer(folder: Path) -> None:
    (folder / "tiny-gpt" / "tokenizer.json").unlink()


def a_folder_in_place_of_a_file(folder: Path) -> None:
    (folder / "tiny-gpt" / "config.json").unlink()
    (folder / "tiny-gpt" / "config.json").mkdir()


def everything(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path)


FAULTS = (remove, empty_weights, other_config, no_tokenizer, a_folder_in_place_of_a_file, everything)


def faults_in_turn(faults: Sequence[Callable[[Path], None]], pages: Sequence[str]) -> pytest.MarkDecorator:
    """Every fault on one page in every run, the pages in turn; on all pages at night."""
    cases = [
        pytest.param(fault, page, marks=() if number % len(pages) == place else pytest.mark.nightly)
        for number, fault in enumerate(faults)
        for place, page in enumerate(pages)
    ]
    return pytest.mark.parametrize(("fault", "page"), cases)


@pytest.mark.slow
@faults_in_turn(FAULTS, ("overview", "checkpoint", "compare"))
def test_a_checkpoint_that_breaks_while_it_is_looked_at(
    open_app: Callable[..., AppTest], folder: Path, page: str, fault: Callable[[Path], None]
) -> None:
    app = open_app(page, checkpoint="tiny-gpt", sentence="Hello there.")
    is_fine(app)
    fault(folder)
    app.run()
    assert not app.exception
    if fault is not remove and fault is not a_folder_in_place_of_a_file:  # in these cases another checkpoint is opened
        assert "The checkpoint tiny\\-gpt cannot be opened" in app.error[0].value


@pytest.mark.slow
@faults_in_turn((remove, empty_weights, other_config, no_tokenizer, everything), ("checkpoint", "compare", "training"))
def test_nobody_outside_learns_where_the_files_of_a_public_server_lie(
    public_server: None, open_app: Callable[..., AppTest], folder: Path, page: str, fault: Callable[[Path], None]
) -> None:
    app = open_app(page, checkpoint="tiny-gpt", sentence="Hello there.")
    fault(folder)
    app.run()
    sent = "".join(str(getattr(element, "proto", "")) for element in app)
    for part in folder.parts[1:]:
        assert f"/{part}/" not in sent and f"/{part}\\" not in sent, part
