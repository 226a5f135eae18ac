"""No file in a folder of checkpoints breaks a page that does not show it; each has its sentence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine
from transformer import CheckpointError
from transformer.files import names
from ui.compute import loading

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
    "unequal head widths": json.dumps(GEMMA4),
    "a type that is a list": '{"model_type": ["llama"]}',
    "no object": "[1, 2]",
    "deep": '{"a":' * 100_000,
    "not UTF-8": b"\xff\xfe{",
    "empty": "",
    "large numbers": '{"model_type": "llama", "num_hidden_layers": 1e999, "hidden_size": -1}',
}


def write_config(folder: Path, config: str | bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(config if isinstance(config, bytes) else config.encode())


@pytest.fixture
def folder(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A good checkpoint among many that are not, an odd adapter, and a name that is no text."""
    shutil.copytree(checkpoints_folder / "tiny-gpt", tmp_path / "good")
    for name, config in CONFIGS.items():
        write_config(tmp_path / name, config)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "a\\u0000b/' + "c" * 5000 + '"}')
    (adapter / "config.json").write_text("{}")
    unnamed = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(unnamed)
    (Path(os.fsdecode(unnamed)) / "config.json").write_text("{}")
    monkeypatch.setenv(loading.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("page", ["overview", "attention", "compare", "tokens", "positions"])
def test_no_folder_breaks_a_page_that_does_not_show_it(
    folder: Path, open_app: Callable[..., AppTest], page: str
) -> None:
    app = open_app(page, checkpoint="good")
    is_fine(app)
    listed = " ".join(app.selectbox(key="sidebar checkpoint").options)
    assert all(name in listed for name in (*CONFIGS, "good"))


@pytest.mark.parametrize("name", CONFIGS)
def test_each_is_listed_with_its_sentence(folder: Path, open_app: Callable[..., AppTest], name: str) -> None:
    app = open_app("overview", checkpoint=name)
    assert not app.exception
    assert any("cannot be opened" in error.value.replace("\\", "") for error in app.error)


def test_a_config_that_its_own_code_cannot_read_is_refused_in_a_sentence(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot build a model of model_type 'gemma4_text' from this config"):
        loading.config_of("unequal head widths")


def test_no_file_in_the_cache_of_the_hub_breaks_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub").constants
    for name, config in {**CONFIGS, "good": '{"model_type": "opt"}'}.items():
        write_config(tmp_path / f"models--x--{name}" / "snapshots" / "0", config)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert "x/good" in tuple(names._hub_names())
