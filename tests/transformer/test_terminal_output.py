"""Commands print no control character from a file: a tensor's name may not move the reader's cursor."""

from __future__ import annotations

import io
import json
import re
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.foreign_checkpoints import foreign_checkpoint
from transformer.system import terminal
from transformer.system.python_process import start_python

EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\x7f"
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")


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


def printed(*arguments: str, status: int = 0) -> str:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "encoding": "utf-8"}
    process = start_python("-m", "transformer", *arguments, **streams)
    output = process.communicate(timeout=300)[0]
    assert process.returncode == status, output[-2000:]
    return output


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [("verify",), ("inspect",), ("inspect", "--json"), ("heads", "--checkpoint"), ("openings", "--checkpoint")],
)
def test_a_command_about_a_checkpoint(folder: Path, command: tuple[str, ...]) -> None:
    output = printed(*command, str(folder), status=1 if command[0] == "openings" else 0)
    assert output and not CONTROLS.search(output)
    if command == ("verify",):
        assert r"1 not read: \u001b[2J\u001b]0;title\u0007\u009b31m\u007f\nequal within 1e-03" in output
        assert "\nequal within 1e-03" not in output, "a name is no line of ours"


def test_a_trace_of_a_text_with_control_characters(folder: Path) -> None:
    output = printed("trace", "--checkpoint", str(folder), "--sentence", f"a {EVIL} b")
    assert "source" in output and not CONTROLS.search(output)


def test_errors_show_what_is_wrong_without_its_control_characters(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": f"gpt2{EVIL}"}))
    for arguments in (
        ("inspect", str(tmp_path)),
        ("inspect", str(folder / f"none{EVIL}")),
        ("trace", "--checkpoint", str(folder), "--sentence", "a", "--pads", EVIL),
        (f"command{EVIL}",),
    ):
        output = printed(*arguments, status=2)
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
