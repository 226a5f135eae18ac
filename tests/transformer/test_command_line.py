"""``python -m transformer``: what other programs rely on when they measure a checkpoint."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import transformer
from transformer.command_line import main

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


def test_translate_refuses_a_model_that_does_not_translate(checkpoints_folder, typed, capsys):
    typed("hello\n")
    assert main(["translate", "--checkpoint", str(checkpoints_folder / "tiny-gpt")]) == 2
    assert "only an encoder-decoder translates" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "scores"),
    [
        ("tiny-translator", PAIRS, {"bleu", "chrf", "sentences", "beam", "bleu_signature"}),
        ("tiny-gpt", PAIRS, {"perplexity_per_word", "perplexity_per_token", "sentences"}),
        ("tiny-bert", "The cat sleeps on the table.\n" * 3 + PAIRS, {"masked_accuracy", "masked_tokens", "sentences"}),
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


def test_evaluate_says_what_is_wrong_with_a_file(checkpoints_folder, tmp_path, capsys):
    checkpoint = ["--checkpoint", str(checkpoints_folder / "tiny-translator")]
    assert main(["evaluate", *checkpoint, "--data", str(tmp_path / "none.tsv")]) == 2
    assert "none.tsv is missing" in capsys.readouterr().err
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text("one column only\n", encoding="utf-8")
    assert main(["evaluate", *checkpoint, "--data", str(wrong)]) == 2
    assert "line 1: there must be exactly two columns" in capsys.readouterr().err


def test_trace_lists_every_activation_and_prints_one(checkpoints_folder, tiny_checkpoint, capsys):
    arguments = ["trace", "--checkpoint", str(checkpoints_folder / "tiny-bert"), "--sentence", "The cat ___."]
    assert main(arguments) == 0
    listing = capsys.readouterr().out
    trace = transformer.trace(tiny_checkpoint("bert"), "The cat ___.")
    assert all(name in listing for name in trace.names())
    assert main([*arguments, "--name", "encoder.logits"]) == 0
    assert json.loads(capsys.readouterr().out) == trace.values("encoder.logits").tolist()


def test_inspect_counts_every_parameter_once(checkpoints_folder, tiny_checkpoint, capsys):
    assert main(["inspect", "--checkpoint", str(checkpoints_folder / "tiny-bert")]) == 0
    assert f"{tiny_checkpoint('bert').model.n_parameters:,} parameters" in capsys.readouterr().out


def test_a_missing_checkpoint_is_one_sentence(tmp_path: Path, capsys):
    assert main(["inspect", "--checkpoint", str(tmp_path / "nowhere")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and "is no directory" in error and "Traceback" not in error


def test_a_package_that_is_not_installed_is_named_with_the_remedy(tmp_path, monkeypatch, capsys):
    recipe = tmp_path / "tiny.toml"
    recipe.write_text('name = "t"\ntask = "translation"\ncorpus = "tatoeba-en-fr"\n[model]\n', encoding="utf-8")
    monkeypatch.setitem(sys.modules, "accelerate", None)  # as if it were not there
    assert main(["train", str(recipe), "--run-directory", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "train needs accelerate" in error and "requirements-train.txt" in error


def test_translate_reads_and_writes_utf_8_whatever_the_locale_says(checkpoints_folder):
    command = [
        sys.executable,
        "-m",
        "transformer",
        "translate",
        "--checkpoint",
        str(checkpoints_folder / "tiny-translator"),
    ]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    lines = ["I like it 😀.".encode(), b"\xff\xfe is no text", b"fine\r"]
    done = subprocess.run(command, input=b"\n".join(lines), capture_output=True, env=environment, cwd=ROOT, check=True)
    assert len(done.stdout.decode("utf-8").splitlines()) == len(lines)
