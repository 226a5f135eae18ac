"""No program asks a hub because a file names something there; only ``fetch`` downloads."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.transformer.disk.test_config_limits import folder_of
from transformer import CheckpointError, load
from transformer.files.layout import config_of
from transformer.system.offline import SETTINGS

ROOT = Path(__file__).resolve().parents[1]
# Python runs this file first: it notes each library that is loaded before the process is offline.
WATCH = """
import importlib.abc, os, sys

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {"huggingface_hub", "transformers", "tokenizers", "datasets", "torch", "streamlit", "safetensors"}:
            state = "offline" if os.environ.get("HF_HUB_OFFLINE") == "1" else "online"
            open(os.environ["NOTES"], "a").write(f"{state} {name}\\n")

sys.meta_path.insert(0, Watch())
"""
PROGRAMS = {
    "python -m transformer": ("-m", "transformer", "inspect", "nothing/here"),
    "glassformer": ("-m", "glassformer", "--help"),
    "python -m deploy.serve": ("-m", "deploy.serve", "--help"),
    "streamlit run app.py": ("app.py",),
}


def notes_of(arguments: tuple[str, ...], folder: Path) -> list[str]:
    """Return which libraries a program loads, with "offline" or "online" in front."""
    (folder / "sitecustomize.py").write_text(WATCH)
    online = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    variables = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "NOTES": str(folder / "notes")}
    command = [sys.executable, *arguments]
    subprocess.run(command, cwd=ROOT, env={**online, **variables}, capture_output=True, timeout=300)
    return (folder / "notes").read_text().splitlines()


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_is_offline_before_it_loads_a_library(program: str, tmp_path: Path) -> None:
    notes = notes_of(PROGRAMS[program], tmp_path)
    assert notes and all(note.startswith("offline ") for note in notes)


def test_only_the_command_that_downloads_is_online(tmp_path: Path) -> None:
    code = "import sys; sys.argv[1:] = ['fetch']; from transformer.system.offline import stay_offline; stay_offline()"
    notes = notes_of(("-c", f"{code}; import huggingface_hub"), tmp_path)
    assert notes == ["online huggingface_hub"]


NAMING = {
    "a backbone of another repository": {"model_type": "dpt", "architectures": ["DPTModel"], "backbone": "evil/x"},
    "a backbone of timm": {"model_type": "detr", "architectures": ["DetrModel"], "backbone": "resnet50"},
    "the default backbone": {"model_type": "detr", "architectures": ["DetrModel"], "use_timm_backbone": False},
    "a backbone that is described": {
        "model_type": "vitmatte",
        "architectures": ["VitMatteForImageMatting"],
        "backbone_config": {"model_type": "vitdet"},
    },
    "a backbone in a part": {
        "model_type": "clip",
        "architectures": ["CLIPModel"],
        "vision_config": {"more": [{"backbone": "evil/x"}]},
    },
}


@pytest.mark.parametrize("config", NAMING)
def test_a_config_that_names_another_model_is_refused_without_a_question(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *names, **_: asked.append(names) or [])
    for work in (load, config_of):
        with pytest.raises(CheckpointError, match="backbone.* is .*: a model that is built from another one"):
            work(folder_of(NAMING[config], tmp_path))
    assert not asked


def test_kernels_and_attention_that_a_part_names_are_not_loaded(tmp_path: Path) -> None:
    """A repository with code may stand where the name of an attention function is expected."""
    from transformer.guests.opening import _settings

    named = {"attn_implementation": "evil/kernel", "_attn_implementation": "evil/kernel", "hidden_size": 8}
    fields = {"vision_config": {**named, "layers": [named]}, **named}
    assert "evil" not in json.dumps(_settings(fields)) and _settings(fields)["vision_config"]["hidden_size"] == 8
