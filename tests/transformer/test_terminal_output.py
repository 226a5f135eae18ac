"""Commands print no control character from a file: a tensor's name may not move the reader's cursor."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.foreign_checkpoints import foreign_checkpoint
from transformer.system import terminal
from transformer.system.python_process import start_python

EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\x7f\u202eexe\u2066"
BEGINS, ENDS = "--- begins", "--- ends with"
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with an unknown tensor and a token whose names are terminal control sequences."""
    path = foreign_checkpoint("hf-gpt2", tmp_path_factory.mktemp(f"models{EVIL}"))
    weights = path / "model.safetensors"
    save_file(load_file(weights) | {f"{EVIL}\nequal within 1e-03": torch.zeros(2)}, weights, metadata={"format": "pt"})
    content = json.loads((path / "tokenizer.json").read_text())
    content["added_tokens"].append({**content["added_tokens"][0], "id": 399, "content": EVIL, "special": True})
    (path / "tokenizer.json").write_text(json.dumps(content))
    return path


# Runs several commands in a process that is set up as ``python -m transformer`` sets up its own, with a line before
# and after each.
SEVERAL = f"""
import json, sys
from transformer.__main__ import main
from transformer.system.terminal import escape_output
escape_output()
for command in json.loads(sys.argv[1]):
    print("{BEGINS}", flush=True)
    try:
        status = main(command)
    except SystemExit as ended:  # of a command line that cannot be read
        status = ended.code
    sys.stderr.flush()
    print("{ENDS}", status, flush=True)
"""


def output_of(*arguments: str) -> tuple[int, str]:
    """Return the exit status of a Python process, and what it printed to both streams."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "encoding": "utf-8"}
    process = start_python(*arguments, **streams)
    output = process.communicate(timeout=300)[0]
    return process.returncode, output


def printed(*commands: tuple[str, ...]) -> list[tuple[int, str]]:
    """Return the status and the output of each command; they run in one process, which imports only once."""
    status, output = output_of("-c", SEVERAL, json.dumps(commands))
    assert status == 0, output[-2000:]
    parts = [part.rpartition(ENDS) for part in output.split(f"{BEGINS}\n")[1:]]
    assert len(parts) == len(commands), output[-2000:]
    return [(int(status), said) for said, _, status in parts]


@pytest.mark.slow
def test_commands_about_a_checkpoint(folder: Path) -> None:
    commands = {
        ("inspect", str(folder)): 0,
        ("inspect", "--json", str(folder)): 0,
        ("heads", "--checkpoint", str(folder)): 0,
        ("trace", "--checkpoint", str(folder), "--sentence", f"a {EVIL} b"): 0,
    }
    for (command, expected), (status, output) in zip(commands.items(), printed(*commands), strict=True):
        assert status == expected and output and not CONTROLS.search(output), (command, output[-2000:])
        assert command[0] != "trace" or "source" in output


def test_errors_show_what_is_wrong_without_its_control_characters(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": f"gpt2{EVIL}"}))
    commands = (
        ("inspect", str(tmp_path)),
        ("inspect", str(folder / f"none{EVIL}")),
        ("trace", "--checkpoint", str(folder), "--sentence", "a", "--pads", EVIL),
        (f"command{EVIL}",),
    )
    for command, (status, output) in zip(commands, printed(*commands), strict=True):
        assert status == 2, (command, output[-2000:])
        assert "u001b" in output or "x1b" in output
        assert not CONTROLS.search(output), repr(output)


def test_a_traceback_too() -> None:
    code = f"from transformer.system.terminal import escape_output\nescape_output()\nraise KeyboardInterrupt({EVIL!r})"
    process = start_python("-c", code, stderr=subprocess.PIPE, text=True)
    shown = process.communicate(timeout=60)[1]
    assert "KeyboardInterrupt" in shown and not CONTROLS.search(shown)


def test_json_stays_json_and_a_progress_bar_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    output, problems = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdout", output)
    monkeypatch.setattr("sys.stderr", problems)
    terminal.escape_output()
    terminal.escape_output()
    print(json.dumps({"name": EVIL}, ensure_ascii=False))
    assert json.loads(output.getvalue()) == {"name": EVIL}
    from tqdm import tqdm

    for _ in tqdm(range(3), file=None, mininterval=0):
        pass
    assert problems.getvalue().startswith("\r") and r"\u" not in problems.getvalue()


def test_one_line() -> None:
    assert terminal.one_line("a\n\tb\x1b[0m é 日") == r"a\n\tb\u001b[0m é 日"
    assert terminal.escape_controls("a\n\tb\r") == "a\n\tb\\u000d"
    assert terminal.escape_controls("e\u202egpj.\u2028\u200f\udcff") == r"e\u202egpj.\u2028\u200f\udcff"
    assert terminal.escape_controls("👩\u200d👩 می\u200cخواهم עברית") == "👩\u200d👩 می\u200cخواهم עברית"


def test_a_name_that_reorders_a_line_and_one_that_is_no_text_are_printed_escaped(tmp_path: Path) -> None:
    commands = [("inspect", f"{tmp_path}/{name}") for name in ("a\u202egpj.exe", os.fsdecode(b"\xff\xfe"))]
    for (status, output), sign in zip(printed(*commands), (r"\u202e", r"\udcff\udcfe"), strict=True):
        assert status == 2 and sign in output and not CONTROLS.search(output), output
