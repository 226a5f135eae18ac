"""Checkpoint files that are malformed or change while the app runs are reported in a sentence."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.nights import TURN
from tests.pages.conftest import is_fine
from transformer.files import names
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
    "not UTF-8": b"\xff\xfe\x00title = 3",
    "NUL": b'sentence = "a\\u0000b"',
    "numbers": b"sentence = 3\nshort = 4\nlayer = 99999999999999999999\nhead = -1\ntoken = 1e400\n",
    "lists": b"sentence = ['a', 3]\nexample = 3\nexamples = [1, 2]\n[en]\nshows = 3\n",
    "a table": b"[sentence]\nsentence = 'x'\n",
    "unknown keys": b"__class__ = 'x'\nnothing = 1\n",
    "large": b"sentence = '" + b"x" * 30_000_000 + b"'",
    "long": b"sentence = '" + b"word " * 20_000 + b"'",
    "markup": b"sentence = '<script>alert(1)</script> https://evil.test'\nshort = '![x](http://evil.test)'\n",
}
BESIDE = {
    "history.csv": "training",
    "head_roles.json": "heads",
    "README.md": "checkpoint",
    "snapshots/step-000010.safetensors": "training",
    "opening.toml": "overview",
}


@pytest.mark.slow
@pytest.mark.sample("name", of=2)
@pytest.mark.parametrize("file", BESIDE)
@pytest.mark.parametrize("name", NONSENSE)
def test_a_file_beside_the_weights_that_is_nonsense_ends_no_page(open_app, own_folder, file, name) -> None:
    path = own_folder / "tiny-gpt" / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(NONSENSE[name])
    app = open_app(BESIDE[file], checkpoint="tiny-gpt")
    assert not app.exception
    assert all("cannot be opened" in error.value.replace("\\", "") for error in app.error)


# ---- a checkpoint that breaks ---------------------------------------------------------------------------------------


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
PAGES = ("overview", "checkpoint", "compare", "training")


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_checkpoint_that_breaks_is_named_and_none_of_the_server_s_folders(
    public_server, open_app, own_folder, fault
) -> None:
    app = open_app(PAGES[(FAULTS.index(fault) + TURN) % len(PAGES)], checkpoint="tiny-gpt", sentence="Hello there.")
    is_fine(app)
    fault(own_folder)
    app.run()
    assert not app.exception
    if fault not in (remove, a_folder_in_place_of_a_file):  # in these cases another checkpoint is opened
        assert "The checkpoint tiny\\-gpt cannot be opened" in app.error[0].value
    sent = "".join(str(getattr(element, "proto", "")) for element in app)
    for part in own_folder.parts[1:]:
        assert f"/{part}/" not in sent and f"/{part}\\" not in sent, part


# ---- folders that are none: tests/golden/hostile.py -----------------------------------------------------------------


def write_config(folder: Path, config: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(config)


def test_no_name_of_a_file_or_a_folder_breaks_the_list(own_folder, open_app) -> None:
    """An adapter of a base whose path is no path, and a folder whose name is no text."""
    write_config(own_folder / "adapter", b"{}")
    path = '{"base_model_name_or_path": "a\\u0000b/' + "c" * 5000 + '"}'
    (own_folder / "adapter" / "adapter_config.json").write_text(path)
    write_config(Path(os.fsdecode(os.fsencode(own_folder) + b"/\xff\xfe")), b"{}")
    app = open_app("tokens", checkpoint="tiny-gpt")
    is_fine(app)
    assert "tiny-gpt" in " ".join(app.selectbox(key="sidebar checkpoint").options)


def test_no_file_in_the_cache_of_the_hub_breaks_the_list(tmp_path, monkeypatch) -> None:
    constants = pytest.importorskip("huggingface_hub").constants
    configs = {"a type that is a list": b'{"model_type": ["llama"]}', "deep": b'{"a":' * 100_000, "no text": b"\xff{"}
    for name, config in {**configs, "good": b'{"model_type": "opt"}'}.items():
        write_config(tmp_path / f"models--x--{name}" / "snapshots" / "0", config)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert "x/good" in tuple(names._hub_names())
