"""Checkpoint files that are malformed or change while the app runs are reported in a sentence."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.nights import TURN
from tests.pages.conftest import is_fine
from transformer import CheckpointError
from transformer.files import names
from transformer.training import run_state
from ui.compute import loading

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


@pytest.fixture
def folder(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of the tiny checkpoints, which a test may break."""
    for path in checkpoints_folder.iterdir():
        shutil.copytree(path, tmp_path / path.name)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    return tmp_path


@pytest.mark.slow
@pytest.mark.sample("name", of=2)
@pytest.mark.parametrize("file", BESIDE)
@pytest.mark.parametrize("name", NONSENSE)
def test_a_file_beside_the_weights_that_is_nonsense_ends_no_page(open_app, folder, file, name) -> None:
    path = folder / "tiny-gpt" / file
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
def test_a_checkpoint_that_breaks_while_it_is_looked_at(open_app, folder, fault) -> None:
    app = open_app(PAGES[(FAULTS.index(fault) + TURN) % len(PAGES)], checkpoint="tiny-gpt", sentence="Hello there.")
    is_fine(app)
    fault(folder)
    app.run()
    assert not app.exception
    if fault not in (remove, a_folder_in_place_of_a_file):  # in these cases another checkpoint is opened
        assert "The checkpoint tiny\\-gpt cannot be opened" in app.error[0].value


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_errors_of_a_public_server_name_none_of_its_folders(public_server, open_app, folder, fault) -> None:
    app = open_app(PAGES[(FAULTS.index(fault) + TURN) % len(PAGES)], checkpoint="tiny-gpt", sentence="Hello there.")
    fault(folder)
    app.run()
    sent = "".join(str(getattr(element, "proto", "")) for element in app)
    for part in folder.parts[1:]:
        assert f"/{part}/" not in sent and f"/{part}\\" not in sent, part


# ---- folders that are none ------------------------------------------------------------------------------------------

GEMMA4 = {  # its attribute of head widths is ambiguous and raises an error of its own
    "model_type": "gemma4_text",
    "architectures": ["Gemma4ForCausalLM"],
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "global_head_dim": 16,
    "intermediate_size": 48,
    "vocab_size": 300,
}
CONFIGS = {
    "unequal head widths": json.dumps(GEMMA4).encode(),
    "a type that is a list": b'{"model_type": ["llama"]}',
    "no object": b"[1, 2]",
    "deep": b'{"a":' * 100_000,
    "not UTF-8": b"\xff\xfe{",
    "empty": b"",
    "large numbers": b'{"model_type": "llama", "num_hidden_layers": 1e999, "hidden_size": -1}',
}


def write_config(folder: Path, config: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(config)


@pytest.fixture
def odd(folder: Path) -> Path:
    """Good checkpoints among many that are not, an odd adapter, and a name that is no text."""
    for name, config in CONFIGS.items():
        write_config(folder / name, config)
    write_config(folder / "adapter", b"{}")
    path = '{"base_model_name_or_path": "a\\u0000b/' + "c" * 5000 + '"}'
    (folder / "adapter" / "adapter_config.json").write_text(path)
    write_config(Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe")), b"{}")
    return folder


@pytest.mark.parametrize("page", ["overview", "attention", "compare", "tokens", "positions"])
def test_no_folder_breaks_a_page_that_does_not_show_it(odd, open_app, page) -> None:
    app = open_app(page, checkpoint="tiny-gpt")
    is_fine(app)
    listed = " ".join(app.selectbox(key="sidebar checkpoint").options)
    assert all(name in listed for name in (*CONFIGS, "tiny-gpt"))


def test_each_is_refused_in_a_sentence(odd, open_app) -> None:
    for name in CONFIGS:
        app = open_app("overview", checkpoint=name)
        assert not app.exception and "cannot be opened" in app.error[0].value.replace("\\", ""), name
    with pytest.raises(CheckpointError, match="gemma4_text"):
        loading.load_checkpoint("unequal head widths")


def test_no_file_in_the_cache_of_the_hub_breaks_the_list(tmp_path, monkeypatch) -> None:
    constants = pytest.importorskip("huggingface_hub").constants
    for name, config in {**CONFIGS, "good": b'{"model_type": "opt"}'}.items():
        write_config(tmp_path / f"models--x--{name}" / "snapshots" / "0", config)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert "x/good" in tuple(names._hub_names())
