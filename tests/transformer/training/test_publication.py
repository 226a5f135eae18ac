"""Training from the command line, and the files that it writes to ``checkpoints/``."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch

import transformer
from transformer.__main__ import main
from transformer.files.checkpoints import load_weights
from transformer.files.model_card import best_row, checkpoint_step
from transformer.files.snapshots import quantise, snapshot, snapshot_steps
from transformer.training.run_state import COLUMNS, write_history

RECIPE = """
name = "tiny"
task = "translation"
corpus = "tatoeba-en-fr"
steps = 6
batch_tokens = 120
warmup_steps = 2
log_every = 2
evaluate_every = 3
evaluate_sentences = 4
save_every = 2
snapshots = [0, 4]

[model]
vocabulary_size = 300
d_model = 16
n_heads = 2
d_ff = 24
n_encoder_layers = 1
n_decoder_layers = 1
max_length = 128
"""


def arguments_of_train(data: Path, folder: Path) -> list[str]:
    (folder / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    folders = ("--run-directory", str(folder / "run"), "--output", str(folder / "out"))
    return ["train", str(folder / "tiny.toml"), "--data", str(data), *folders]


@pytest.fixture(scope="module")
def published(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run and the publication of a training that was stopped once."""
    folder, printed = tmp_path_factory.mktemp("published"), StringIO()
    arguments = arguments_of_train(data, folder)
    assert main([*arguments, "--stop-after", "3"]) == 0
    assert not (folder / "out").exists(), "a stopped run publishes nothing until it has ended"
    with redirect_stdout(printed):
        assert main(arguments) == 0
    assert "now holds this run's best checkpoint" in printed.getvalue()
    return folder


def test_what_is_published_loads_with_its_card_and_curves(published):
    checkpoint = transformer.load(published / "out")
    assert transformer.decode(checkpoint, "The cat sat.").steps
    for fact in ("6 steps", "CC BY 2.0 FR", "1 + 1 layers", "python -m transformer train configs/tiny.toml"):
        assert fact in checkpoint.card
    header, *rows = (published / "out" / "history.csv").read_text(encoding="utf-8").splitlines()
    assert header.split(",") == list(COLUMNS)
    assert [int(row.split(",")[0]) for row in rows] == [2, 3, 4, 6]  # every second step, and every third with scores
    assert sorted(file.name for file in (published / "run" / "snapshots").iterdir()) == [
        "step-000000.safetensors",
        "step-000004.safetensors",
    ]


def test_a_better_checkpoint_that_is_there_already_stays(data, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    write_history(out / "history.csv", [{"step": 1, "dev_score": 101.0}])
    (out / "model.safetensors").write_bytes(b"better")
    assert main(arguments_of_train(data, tmp_path)) == 0
    assert "stays as it is: its dev score is 101.00" in capsys.readouterr().out
    assert (out / "model.safetensors").read_bytes() == b"better"


def test_the_snapshots_before_the_checkpoint_are_published_in_eight_bits(published):
    best = best_row(published / "out" / "history.csv")["step"]
    assert checkpoint_step(published / "out") == best
    assert snapshot_steps(published / "out") == tuple(step for step in (0, 4) if step < best)
    checkpoint = transformer.load(published / "out")
    first = load_weights(checkpoint.config, published / "run" / "snapshots" / "step-000000.safetensors")
    own = snapshot(checkpoint, 0).model
    name = "encoder.layers.0.feed_forward.input_projection.weight"
    numbers, scale = quantise(first.get_parameter(name))
    assert torch.equal(own.get_parameter(name), numbers * scale.float()[:, None])


def test_the_best_row_is_the_first_with_the_highest_score(tmp_path):
    rows = [{"step": 1}, *({"step": step, "dev_score": score} for step, score in ((2, -3.5), (3, -1.0), (4, -1.0)))]
    write_history(tmp_path / "history.csv", rows)
    assert best_row(tmp_path / "history.csv") == {"step": 3.0, "dev_score": -1.0}


def test_the_card_says_which_step_was_kept_before_the_history_does(tmp_path):
    assert checkpoint_step(tmp_path) is None
    write_history(tmp_path / "history.csv", [{"step": 10_000, "dev_score": 2.0}, {"step": 12_000, "dev_score": 1.0}])
    assert checkpoint_step(tmp_path) == 10_000
    card = tmp_path / "README.md"
    card.write_text("# A card that says nothing, at step 5 or so\n")
    assert checkpoint_step(tmp_path) == 10_000
    card.write_text("| seed | 1 |\n| chosen by | BLEU on all of dev: 50.8 at step 12,000 (50.6 at step 10,000) |\n")
    assert checkpoint_step(tmp_path) == 12_000
