"""The commands: what programs rely on, errors in one sentence, and no control characters."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from transformer.__main__ import main
from transformer.system import terminal
from transformer.system.python_process import start_python

ROOT = Path(__file__).resolve().parents[2]
PAIRS = "The cat sleeps.\tLe chat dort.\nThe cat sleeps.\tLe chat est endormi.\nI see it.\tJe le vois.\n"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch):
    """Put lines on standard input."""

    def put(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return put


@pytest.mark.parametrize("beam", ["1", "3"])
def test_translate_writes_one_line_for_each_line_in_order(checkpoints_folder, tiny_checkpoint, typed, capsys, beam):
    lines = ["The dog sleeps.", "", "  ", "I love you </s> more."]
    typed("\n".join(lines) + "\n")
    assert main(["translate", "--checkpoint", str(checkpoints_folder / "tiny-translator"), "--beam", beam]) == 0
    written = capsys.readouterr().out.removesuffix("\n").split("\n")
    strategy = transformer.Beam(3) if beam == "3" else transformer.Greedy()
    alone = [
        " ".join(transformer.decode(tiny_checkpoint("translator"), line, strategy).text.split()) if line.strip() else ""
        for line in lines
    ]
    assert written == alone


def test_translate_keeps_its_place_after_a_line_that_is_too_long(checkpoints_folder, typed, capsys):
    typed("hello\n" + "word " * 300 + "\nhello\n")
    assert main(["translate", "--checkpoint", str(checkpoints_folder / "tiny-translator")]) == 2
    output = capsys.readouterr()
    first, second, third = output.out.removesuffix("\n").split("\n")
    assert second == "" and first == third
    assert "line 2: The sentence has" in output.err and "at most 96" in output.err


@pytest.mark.parametrize(
    ("name", "text", "scores"),
    [
        ("tiny-translator", PAIRS, {"bleu", "chrf", "sentences", "beam", "bleu_signature", "chrf_signature"}),
        ("tiny-gpt", PAIRS, {"perplexity_per_word", "perplexity_per_token", "sentences"}),
        (
            "tiny-bert",
            "The cat sleeps on the table.\n" * 3 + PAIRS,
            {"masked_accuracy", "masked_accuracy_letters", "masked_words", "masked_words_letters", "sentences"},
        ),
        ("tiny-sentiment", "a good film\t1\na bad film\t0\n", {"accuracy", "sentences"}),
    ],
)
def test_evaluate_prints_one_json_object_with_the_scores_of_the_kind(
    checkpoints_folder, tmp_path, capsys, name, text, scores
):
    data = tmp_path / "data.tsv"
    data.write_text(text, encoding="utf-8")
    assert main(["evaluate", "--checkpoint", str(checkpoints_folder / name), "--data", str(data), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == scores
    # Repeated sources count once, with all their translations.
    assert found["sentences"] == len({line.split("\t")[0] for line in text.splitlines()})


def test_evaluate_with_the_training_file_prints_the_baselines_too(checkpoints_folder, tmp_path, capsys):
    data, train = tmp_path / "data.txt", tmp_path / "train.txt"
    data.write_text("The cat sleeps.\n", encoding="utf-8")
    train.write_text("The dog sleeps.\nThe cat sleeps.\nI see it.\n", encoding="utf-8")
    arguments = ["evaluate", "--checkpoint", str(checkpoints_folder / "tiny-bert"), "--data", str(data)]
    assert main([*arguments, "--train", str(train), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 <= found["unigram_accuracy"] <= 1
    assert found["sentences_also_in_train"] == 1
    assert main([*arguments, "--train", str(train)]) == 0
    lines = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert lines.keys() == found.keys()
    assert float(lines["unigram_accuracy"]) == pytest.approx(found["unigram_accuracy"], rel=1e-3)


def test_evaluate_says_which_package_a_baseline_needs(checkpoints_folder, tmp_path, monkeypatch, capsys):
    data = tmp_path / "data.tsv"
    data.write_text("a good film\t1\n", encoding="utf-8")
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)  # as if the package did not exist
    checkpoint = str(checkpoints_folder / "tiny-sentiment")
    assert main(["evaluate", "--checkpoint", checkpoint, "--data", str(data), "--train", str(data)]) == 2
    error = capsys.readouterr().err
    assert "evaluate needs scikit-learn; " in error and "requirements-train.txt" in error


@pytest.fixture
def own_copy(checkpoints_folder, tmp_path):
    """A checkpoint whose card may be written to."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(checkpoints_folder / name, tmp_path / name))

    return copy


def test_the_card_holds_the_scores_the_baselines_and_the_whole_command(own_copy, tmp_path, capsys):
    folder = own_copy("tiny-bert")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "dev.txt").write_text("The cat sleeps.\nYes!\n", encoding="utf-8")
    (corpus / "train.txt").write_text("A dog sleeps.\nNo!\n", encoding="utf-8")
    files = ["--data", str(corpus / "dev.txt"), "--train", str(corpus / "train.txt")]
    assert main(["evaluate", "--checkpoint", str(folder), *files, "--update-card", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    card = (folder / "README.md").read_text(encoding="utf-8")
    for name, value in scores.items():
        assert f"| {name} | {value:.4f} |" in card if isinstance(value, float) else f"| {name} | {value} |" in card
    command = (
        "evaluate --checkpoint checkpoints/tiny-bert --data DIR/corpus/dev.txt --train DIR/corpus/train.txt --json"
    )
    assert f"```\npython -m transformer {command}\n```" in card
    assert str(tmp_path) not in card


def test_cased_and_lower_cased_scores_stand_beside_each_other(own_copy, tmp_path, capsys):
    folder = own_copy("tiny-translator")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("dev", "test"):
        (corpus / f"{name}.tsv").write_text(PAIRS, encoding="utf-8")
    arguments = ["evaluate", "--checkpoint", str(folder), "--beam", "1", "--update-card", "--data"]
    assert main([*arguments, str(corpus / "dev.tsv")]) == 0
    card = folder / "README.md"
    card.write_text(card.read_text(encoding="utf-8") + "\n## What was tried\n\nMore of this.\n", encoding="utf-8")
    assert main([*arguments, str(corpus / "test.tsv"), "--lowercase"]) == 0
    assert main([*arguments, str(corpus / "dev.tsv"), "--lowercase"]) == 0
    once = card.read_text(encoding="utf-8")
    assert main([*arguments, str(corpus / "dev.tsv")]) == 0
    text = card.read_text(encoding="utf-8")
    assert text == once, "scored again, the block stands where it stood"
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert titles == [
        "# tiny-translator",
        "## Scores",
        "### corpus/dev.tsv",
        "### corpus/test.tsv, lower-cased",
        "### corpus/dev.tsv, lower-cased",
        "## What was tried",
    ]
    command = "python -m transformer evaluate --checkpoint checkpoints/tiny-translator --data DIR/corpus"
    assert text.count(f"{command}/dev.tsv --beam 1 --json\n") == 1
    assert text.count(f"{command}/dev.tsv --beam 1 --lowercase --json\n") == 1
    assert text.count("sacreBLEU signature of bleu: `nrefs:2|case:lc|") == 2
    assert text.count("sacreBLEU signature of chrf: `nrefs:2|case:mixed|") == 1
    assert text.count("Scored against up to 2 reference translations per sentence.") == 3
    assert text.endswith("\n## What was tried\n\nMore of this.\n")
    assert "cannot be compared with single-reference BLEU" in capsys.readouterr().out


def test_trace_lists_every_activation_and_prints_one(checkpoints_folder, tiny_checkpoint, capsys):
    arguments = ["trace", "--checkpoint", str(checkpoints_folder / "tiny-bert"), "--sentence", "The cat ___."]
    assert main(arguments) == 0
    listing = capsys.readouterr().out
    trace = transformer.trace(tiny_checkpoint("bert"), "The cat ___.")
    assert all(name in listing for name in trace.names())
    assert main([*arguments, "--name", "encoder.logits"]) == 0
    assert json.loads(capsys.readouterr().out) == trace.values("encoder.logits").tolist()


def test_a_package_that_is_not_installed_is_named_with_the_remedy(tmp_path, monkeypatch, capsys):
    recipe = tmp_path / "tiny.toml"
    recipe.write_text('name = "t"\ntask = "translation"\ncorpus = "tatoeba-en-fr"\n[model]\n', encoding="utf-8")
    monkeypatch.setitem(sys.modules, "accelerate", None)  # as if the package did not exist
    assert main(["train", str(recipe), "--run-directory", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "train needs accelerate" in error and "requirements-train.txt" in error


@pytest.mark.parametrize("is_main_process", [True, False])
def test_one_of_several_training_processes_prints(is_main_process, tmp_path, monkeypatch, capsys):
    class Trainer:
        step, accelerator = 0, SimpleNamespace(is_main_process=is_main_process)

        def __init__(self, *_: object, report: Callable, **__: object) -> None:
            self.report = report

        def run(self, **_: object) -> None:
            self.report({"step": 1, "train_loss": 2.0, "dev_loss": 2.0, "dev_score": 1.0})

    monkeypatch.setattr("transformer.training.trainer.Trainer", Trainer)
    assert main(["train", str(ROOT / "configs" / "en-fr.toml"), "--run-directory", str(tmp_path)]) == 0
    found = capsys.readouterr()
    assert ("step 1: dev loss 2.000" in found.out + found.err) == is_main_process


def test_heads_prints_a_table_and_saves_what_it_prints_as_json(checkpoints_folder, tmp_path, capsys):
    shutil.copytree(checkpoints_folder / "tiny-gpt", tmp_path / "tiny-gpt")
    mine = tmp_path / "mine.txt"
    mine.write_text("The cat sat on the mat.\n\nThe dog sleeps.\n" + "word " * 300 + "\nGo home!\n", encoding="utf-8")
    arguments = ["heads", "--checkpoint", str(tmp_path / "tiny-gpt"), "--sentences", str(mine)]
    assert main([*arguments, "--limit", "3"]) == 0
    table = capsys.readouterr().out
    assert "2 sentences of mine.txt" in table and "1 skipped" in table
    places = [line.split()[2] for line in table.splitlines() if line.startswith("decoder self")]
    assert places == ["0.0", "0.1", "1.0", "1.1"]
    assert "induction heads" in table and ": none;" in table
    assert not (tmp_path / "tiny-gpt" / "head_roles.json").exists()
    assert main([*arguments, "--batch-size", "2", "--save", "--json"]) == 0
    printed = capsys.readouterr()
    saved = json.loads((tmp_path / "tiny-gpt" / "head_roles.json").read_text(encoding="utf-8"))
    assert json.loads(printed.out) == saved
    assert main(["heads", "--checkpoint", str(checkpoints_folder / "tiny-bert"), "--limit", "2"]) == 0
    shipped = capsys.readouterr().out
    assert "2 sentences of en.txt" in shipped and "induction" not in shipped
    assert (saved["sentences"], saved["skipped"], saved["sentence_file"]) == (3, 1, "mine.txt")
    assert "head_roles.json" in printed.err


# ---- errors are one sentence, and leave no partial file --------------------------------------------------------------

CONTENTS = {
    "empty": b"",
    "binary": bytes(range(256)) * 20,
    "utf-16": "The cat.\tLe chat.\n".encode("utf-16"),
    "config.json": b"{}",
    "blank": b" \n",
    "too-long": b"word " * 300,
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
        ("gpt", "heads --save --sentences missing", "There is no file"),
        ("gpt", "heads --save --sentences blank", "contains no sentence"),
        ("gpt", "heads --save --sentences too-long", "tiny-gpt cannot read any of the 1 sentences given"),
        ("translator", "heads --limit 0", "'0' is not an integer ≥ 1"),
        ("translator", "heads --batch-size -4", "'-4' is not an integer ≥ 1"),
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


def started(checkpoints_folder: Path, command: str, *options: str, **streams: object) -> subprocess.Popen:
    """Start a command in a locale without UTF-8."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    return subprocess.Popen(
        [sys.executable, "-m", "transformer", command, *options, str(checkpoints_folder / "tiny-translator")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment, "PYTHONWARNINGS": "error::ResourceWarning"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell ignores it for background jobs
        **streams,
    )


@pytest.mark.slow
def test_nobody_reads_any_more(checkpoints_folder: Path) -> None:
    """As in ``| head -1``: silent, with the status that a shell gives to a closed pipe."""
    process = started(checkpoints_folder, "inspect")
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 141 and errors == b""


@pytest.mark.slow
def test_translate_reads_and_writes_utf_8_whatever_the_locale_says_until_ctrl_c(checkpoints_folder: Path) -> None:
    """Interrupt it while it waits for one more sentence."""
    process = started(checkpoints_folder, "translate", "--checkpoint", stdin=subprocess.PIPE)
    for line in ("I like it 😀.".encode(), b"\xff\xfe is no text", b"fine\r"):
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        process.stdout.readline().decode("utf-8")
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (130, b"", b"interrupted\n")


# ---- control characters ----------------------------------------------------------------------------------------------

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
def test_no_command_prints_a_control_character(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": f"gpt2{EVIL}"}))
    commands = {  # with the status, and a part of what is printed
        ("inspect", str(folder)): (0, ""),
        ("inspect", "--json", str(folder)): (0, ""),
        ("heads", "--limit", "2", "--checkpoint", str(folder)): (0, ""),
        ("trace", "--checkpoint", str(folder), "--sentence", f"a {EVIL} b"): (0, "source"),
        ("inspect", str(tmp_path)): (2, "1b"),
        ("inspect", str(folder / f"none{EVIL}")): (2, "1b"),
        ("trace", "--checkpoint", str(folder), "--sentence", "a", "--pads", EVIL): (2, "1b"),
        (f"command{EVIL}",): (2, "1b"),
        ("inspect", f"{tmp_path}/a\u202egpj.exe"): (2, r"\u202e"),  # reorders a line
        ("inspect", f"{tmp_path}/{os.fsdecode(bytes([255, 254]))}"): (2, r"\udcff\udcfe"),  # is no text
    }
    for (command, (expected, part)), (status, output) in zip(commands.items(), printed(*commands), strict=True):
        assert status == expected and output and part in output, (command, output[-2000:])
        assert not CONTROLS.search(output), (command, output[-2000:])


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
