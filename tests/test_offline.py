"""No program asks a hub because a file names something there; only ``fetch`` downloads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from transformer.system.offline import SETTINGS

ROOT = Path(__file__).resolve().parents[1]
# Python runs this file first. It ends the process at the first library, with a note of whether the process is offline:
# a process that is offline stays so, and libraries take seconds to load.
WATCH = """
import importlib.abc, os, sys

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {"huggingface_hub", "transformers", "tokenizers", "datasets", "torch", "streamlit", "safetensors"}:
            state = "offline" if os.environ.get("HF_HUB_OFFLINE") == "1" else "online"
            open(os.environ["NOTES"], "w").write(f"{state} {name}")
            os._exit(0)

sys.meta_path.insert(0, Watch())
"""
PROGRAMS = {
    "python -m transformer": ("-m", "transformer", "inspect", "nothing/here"),
    "glassformer": ("-m", "glassformer", "--help"),
    "python -m deploy.serve": ("-m", "deploy.serve", "--help"),
    "streamlit run app.py": ("app.py",),
}


def note_of(arguments: tuple[str, ...], folder: Path) -> str:
    """Return the first library that a program loads, with "offline" or "online" in front."""
    (folder / "sitecustomize.py").write_text(WATCH)
    online = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    variables = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "NOTES": str(folder / "notes")}
    command = [sys.executable, *arguments]
    subprocess.run(command, cwd=ROOT, env={**online, **variables}, capture_output=True, timeout=300)
    return (folder / "notes").read_text()


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_is_offline_before_it_loads_a_library(program: str, tmp_path: Path) -> None:
    assert note_of(PROGRAMS[program], tmp_path).startswith("offline ")


def test_only_the_command_that_downloads_is_online(tmp_path: Path) -> None:
    code = "import sys; sys.argv[1:] = ['fetch']; from transformer.system.offline import stay_offline; stay_offline()"
    assert note_of(("-c", f"{code}; import huggingface_hub"), tmp_path) == "online huggingface_hub"


def test_kernels_and_attention_that_a_part_names_are_not_loaded(tmp_path: Path) -> None:
    """A repository with code may stand where the name of an attention function is expected."""
    from transformer.guests.opening import _settings

    named = {"attn_implementation": "evil/kernel", "_attn_implementation": "evil/kernel", "hidden_size": 8}
    fields = {"vision_config": {**named, "layers": [named]}, **named}
    assert "evil" not in json.dumps(_settings(fields)) and _settings(fields)["vision_config"]["hidden_size"] == 8
