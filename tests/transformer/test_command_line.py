"""``python -m transformer``: behaviour that other programs rely on when they measure a checkpoint."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import transformer
from transformer.__main__ import main

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


def test_evaluate_refuses_options_that_change_nothing(checkpoints_folder, tmp_path, capsys):
    data = tmp_path / "data.tsv"
    data.write_text(PAIRS, encoding="utf-8")
    arguments = ["evaluate", "--data", str(data), "--checkpoint"]
    assert main([*arguments, str(checkpoints_folder / "tiny-gpt"), "--lowercase"]) == 2
    assert "only translations can be scored without regard to case" in capsys.readouterr().err
    assert main([*arguments, str(checkpoints_folder / "tiny-translator"), "--train", str(data)]) == 2
    assert "no baseline" in capsys.readouterr().err


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
    assert error.startswith("error: ") and "is not a directory" in error and "Traceback" not in error


def test_a_package_that_is_not_installed_is_named_with_the_remedy(tmp_path, monkeypatch, capsys):
    recipe = tmp_path / "tiny.toml"
    recipe.write_text('name = "t"\ntask = "translation"\ncorpus = "tatoeba-en-fr"\n[model]\n', encoding="utf-8")
    monkeypatch.setitem(sys.modules, "accelerate", None)  # as if the package did not exist
    assert main(["train", str(recipe), "--run-directory", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "train needs accelerate" in error and "requirements-train.txt" in error


@pytest.mark.slow
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
    assert (saved["sentences"], saved["skipped"], saved["sentence_file"]) == (3, 1, "mine.txt")
    assert "head_roles.json" in printed.err


def test_heads_reads_the_sentences_that_ship(checkpoints_folder, capsys):
    arguments = ["heads", "--checkpoint", str(checkpoints_folder / "tiny-bert"), "--limit", "2"]
    assert main(arguments) == 0
    table = capsys.readouterr().out
    assert "2 sentences of en.txt" in table and "induction" not in table


@pytest.mark.parametrize(
    ("more", "text", "sentence"),
    [
        ([], None, "There is no file"),
        ([], " \n", "contains no sentence"),
        ([], "word " * 300, "tiny-gpt cannot read any of the 1 sentences given"),
        (["--limit", "0"], "Go home!", "--limit is 0; it must be at least 1"),
        (["--batch-size", "0"], "Go home!", "batch_size is 0; it must be at least 1"),
    ],
)
def test_heads_says_what_is_wrong(checkpoints_folder, tmp_path, capsys, more, text, sentence):
    mine = tmp_path / "mine.txt"
    if text is not None:
        mine.write_text(text, encoding="utf-8")
    checkpoint = str(checkpoints_folder / "tiny-gpt")
    assert main(["heads", "--checkpoint", checkpoint, "--sentences", str(mine), "--save", *more]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and sentence in error
    assert not (checkpoints_folder / "tiny-gpt" / "head_roles.json").exists()
