"""Training from the command line, and the files that it writes to ``checkpoints/``."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import transformer
from tests.conftest import TINY_SENTENCES
from transformer.__main__ import main
from transformer.files.checkpoints import load_weights
from transformer.files.model_card import best_row, checkpoint_step
from transformer.files.snapshots import quantise, snapshot, snapshot_steps
from transformer.training.publication import best_dev_score, earlier_steps, publish_snapshots
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


@pytest.fixture
def workplace(tmp_path: Path) -> list[str]:
    """Return the arguments of ``train`` for a tiny corpus in the layout of tatoeba-en-fr."""
    corpus = tmp_path / "data" / "tatoeba-en-fr"
    corpus.mkdir(parents=True)
    half = len(TINY_SENTENCES) // 2
    pairs = [
        f"{english}\t{french}\n" for english, french in zip(TINY_SENTENCES[:half], TINY_SENTENCES[half:], strict=True)
    ]
    (corpus / "train.tsv").write_text("".join(pairs[:-4]), encoding="utf-8")
    (corpus / "dev.tsv").write_text("".join(pairs[-4:]), encoding="utf-8")
    (tmp_path / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    folders = {"--data": "data", "--run-directory": "run", "--output": "out"}
    return [
        "train",
        str(tmp_path / "tiny.toml"),
        *(part for k, v in folders.items() for part in (k, str(tmp_path / v))),
    ]


def test_train_publishes_a_checkpoint_that_loads_with_its_card_and_curves(workplace, tmp_path, capsys):
    assert main(workplace) == 0
    assert "now holds this run's best checkpoint" in capsys.readouterr().out
    checkpoint = transformer.load(tmp_path / "out")
    assert transformer.decode(checkpoint, "The cat sat.").steps
    for fact in ("6 steps", "CC BY 2.0 FR", "1 + 1 layers", "python -m transformer train configs/tiny.toml"):
        assert fact in checkpoint.card
    header, *rows = (tmp_path / "out" / "history.csv").read_text(encoding="utf-8").splitlines()
    assert header.split(",") == list(COLUMNS)
    assert [int(row.split(",")[0]) for row in rows] == [2, 3, 4, 6]  # every second step, and every third with scores
    assert sorted(file.name for file in (tmp_path / "run" / "snapshots").iterdir()) == [
        "step-000000.safetensors",
        "step-000004.safetensors",
    ]


def test_a_better_checkpoint_that_is_there_already_stays(workplace, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    write_history(out / "history.csv", [{"step": 1, "dev_score": 101.0}])
    (out / "model.safetensors").write_bytes(b"better")
    assert main(workplace) == 0
    assert "stays as it is: its dev score is 101.00" in capsys.readouterr().out
    assert (out / "model.safetensors").read_bytes() == b"better"


def test_a_stopped_run_publishes_nothing_until_it_has_ended(workplace, tmp_path):
    assert main([*workplace, "--stop-after", "3"]) == 0
    assert not (tmp_path / "out").exists()
    assert main(workplace) == 0
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_scores_are_written_into_the_card_once_per_file(workplace, tmp_path):
    main(workplace)
    data = tmp_path / "data" / "tatoeba-en-fr" / "dev.tsv"
    arguments = ["evaluate", "--checkpoint", str(tmp_path / "out"), "--data", str(data), "--beam", "2", "--update-card"]
    assert main(arguments) == 0
    assert main(arguments) == 0
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert card.count("### tatoeba-en-fr/dev.tsv") == 1
    assert "nrefs:1|" in card
    assert (
        "python -m transformer evaluate --checkpoint checkpoints/out --data DIR/tatoeba-en-fr/dev.tsv --beam 2" in card
    )


def test_best_dev_score_of_no_history_is_none(tmp_path):
    assert best_dev_score(tmp_path / "history.csv") is None


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


def test_the_snapshots_before_the_checkpoint_are_published_in_eight_bits(workplace, tmp_path):
    assert main(workplace) == 0
    best = best_row(tmp_path / "out" / "history.csv")["step"]
    assert checkpoint_step(tmp_path / "out") == best
    assert snapshot_steps(tmp_path / "out") == tuple(step for step in (0, 4) if step < best)
    checkpoint = transformer.load(tmp_path / "out")
    first = load_weights(checkpoint.config, tmp_path / "run" / "snapshots" / "step-000000.safetensors")
    published = snapshot(checkpoint, 0).model
    name = "encoder.layers.0.feed_forward.input_projection.weight"
    numbers, scale = quantise(first.get_parameter(name))
    assert torch.equal(published.get_parameter(name), numbers * scale.float()[:, None])


def test_snapshots_of_a_run_that_was_published_without_them(workplace, tmp_path):
    main(workplace)
    out, run = tmp_path / "out", tmp_path / "run"
    (out / "README.md").unlink()  # without a card, the history says which step was kept
    write_history(out / "history.csv", [{"step": 5, "dev_score": 1.0}])
    assert publish_snapshots(run, out, earlier_steps(run, out)) == (0, 4)
    publish_snapshots(run, out, [4])
    assert snapshot_steps(out) == (4,), "the one of another step is gone"
    with pytest.raises(ValueError, match="no snapshot of step 3 from before the checkpoint"):
        publish_snapshots(run, out, [0, 3])
    write_history(out / "history.csv", [{"step": 4, "dev_score": 1.0}])
    with pytest.raises(ValueError, match="it has snapshots of steps 0"):
        publish_snapshots(run, out, [4])
    (out / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="the snapshots of this run do not fit it"):
        publish_snapshots(run, out, [0])
    assert snapshot_steps(out) == (4,), "what was refused has changed nothing"
