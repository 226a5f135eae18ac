"""Errors of the command line are one sentence without traceback, and leave no partial file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transformer.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
RECIPE = 'name = "r"\ntask = "classification"\ncorpus = "sst2"\n'
MODEL = '[model]\nkind = "encoder-only"\nn_decoder_layers = 0\nclass_names = ["no", "yes"]\n'
CONTENTS = {
    "empty": b"",
    "binary": bytes(range(256)) * 20,
    "utf-16": "The cat.\tLe chat.\n".encode("utf-16"),
    "config.json": b"{}",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of invalid files, in which the command runs."""
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def refused(arguments: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> str:
    before = contents(place)
    try:
        status = main(arguments)
    except SystemExit as stopped:  # argparse prints the usage before its sentence
        status = stopped.code
    output, errors = capsys.readouterr()
    sentence = errors.strip().splitlines()[-1]
    assert status == 2 and not output
    assert (
        "error: " in sentence and "Traceback" not in errors and len(sentence) < 700
    )  # the known entries of a recipe are the longest list
    assert contents(place) == before
    return sentence


@pytest.mark.parametrize("file", ["missing", "empty", "binary", "folder", "config.json", "."])
@pytest.mark.parametrize(
    "command",
    [
        "translate --checkpoint {}",
        "inspect {}",
        "trace --checkpoint {} --sentence x",
        "evaluate --checkpoint {} --data empty",
        "heads --checkpoint {}",
        "train {} --data folder",
    ],
)
def test_a_file_that_is_none(command: str, file: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(command.format(file).split(), place, capsys)


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
@pytest.mark.parametrize("file", ["missing", "empty", "binary", "utf-16", "folder"])
def test_data_that_cannot_be_read_is_named(
    kind: str, file: str, checkpoints_folder: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = str(checkpoints_folder / f"tiny-{kind}")
    said = refused(["evaluate", "--checkpoint", checkpoint, "--data", file], place, capsys)
    assert file in said or "nothing to score" in said
    assert file in refused(["heads", "--checkpoint", checkpoint, "--sentences", file], place, capsys)


@pytest.mark.parametrize(
    ("kind", "command", "message"),
    [
        ("translator", "translate --beam 0", "'0' is not an integer ≥ 1"),
        ("translator", "translate --beam -3", "'-3' is not an integer ≥ 1"),
        ("translator", "translate --beam nan", "'nan' is not an integer"),
        ("translator", "evaluate --data empty --beam 1e3", "'1e3' is not an integer"),
        ("translator", "translate --beam 1000000", "a beam of 1000000 is too wide"),
        ("translator", "evaluate --data empty --beam 101", "100 are the most"),
        ("translator", f"translate --beam {'9' * 5000}", "is not an integer"),
        ("translator", "heads --limit 0", "--limit is 0; it must be at least 1"),
        ("translator", "heads --batch-size -4", "batch_size is -4; it must be at least 1"),
        ("translator", "trace --sentence x --pads -1", "'-1' is not an integer ≥ 0"),
        ("translator", "trace --sentence x --pads 100000", "of which 100000 are padding"),
        (
            "translator",
            "trace --sentence x --name no.such",
            "has no activation 'no.such'; without --name all are listed",
        ),
        ("gpt", "trace --sentence x --pads 3", "has no encoder whose source could be padded; leave --pads out"),
        ("bert", "trace --sentence x --target y", "has no decoder that could read a target; leave --target out"),
        ("sentiment", "trace --sentence x --target y", "leave --target out"),
    ],
)
def test_an_option_that_is_none(
    kind: str, command: str, message: str, checkpoints_folder: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = command.split()
    assert message in refused([name, "--checkpoint", str(checkpoints_folder / f"tiny-{kind}"), *options], place, capsys)


@pytest.mark.parametrize("name", ["", "x", "../x", "a/../b", "/", "a/b/c", "a/..", "\0/x"])
def test_a_name_that_cannot_be_fetched(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("huggingface_hub")
    refused(["fetch", name, "--yes", "--output", "folder"], place, capsys)


@pytest.mark.parametrize(
    "entry",
    [
        *(f"steps = {value}" for value in ("nan", "-1", "0", "inf", '"x"', "1e3", "[]", "true")),
        *(f"learning_rate = {value}" for value in ("nan", "-1.0", "0.0", "inf", '"x"', "[]", "true")),
        *(f"weight_decay = {value}" for value in ("nan", "-0.1", "1.0", '"x"')),
        *(f"seed = {value}" for value in ("-1", "nan", "10000000000", '"x"', "1.0")),
        *(f"name = {value}" for value in ('"../x"', '""', "3", '"a/b"', '"\\u0000"', '"."')),
        *(f"corpus = {value}" for value in ('"no"', "3", "[]", '"../sst2"')),
        *(f"snapshots = {value}" for value in ("3", '["x"]', "[-1]", "[1.5]")),
        *(f"start_from = {value}" for value in ("3", "[]")),
        *("inner_dropout = nan", "restart_at = 1.5", "precision = 16", "unknown = 1", "model = 3", "x = = 3"),
    ],
)
def test_a_recipe_with_a_wrong_entry(entry: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = entry.partition(" ")[0]
    lines = [line for line in RECIPE.splitlines() if not line.startswith(name)]
    model = "" if name == "model" else MODEL
    (place / "r.toml").write_text("\n".join([entry, *lines, model]))
    sentence = refused(["train", "r.toml", "--data", "folder"], place, capsys)
    assert name in sentence or "TOML" in sentence


def test_a_state_that_is_not_whole(tmp_path: Path) -> None:
    from transformer.training.run_state import STATE, load_state

    for content in (b"", b"\x80\x04.", b"PK\x03\x04" + b"x" * 100, b"{}"):
        (tmp_path / STATE).write_bytes(content)
        with pytest.raises(ValueError, match="is not the whole state of a run; remove it, and the run begins again"):
            load_state(tmp_path)


def started(*arguments: str, **streams: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "transformer", *arguments]
    environment = {**os.environ, "PYTHONWARNINGS": "error::ResourceWarning"}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell ignores it for background jobs
        **streams,
    )


@pytest.mark.slow
def test_nobody_reads_any_more(checkpoints_folder: Path) -> None:
    """As in ``| head -1``: silent, with the status that a shell gives to a closed pipe."""
    process = started("inspect", str(checkpoints_folder / "tiny-translator"), stdout=subprocess.PIPE)
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 141 and errors == b""


@pytest.mark.slow
def test_ctrl_c(checkpoints_folder: Path) -> None:
    """Interrupt it while it waits for the second sentence."""
    arguments = ("translate", "--checkpoint", str(checkpoints_folder / "tiny-translator"))
    process = started(*arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"The cat.\n")
    process.stdin.flush()
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and errors == b"interrupted\n"
