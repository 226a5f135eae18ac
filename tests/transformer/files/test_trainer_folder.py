"""Checkpoints that Hugging Face's Trainer writes are one checkpoint with snapshots."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from transformer.files.names import resolve
from transformer.files.snapshots import snapshot, snapshot_steps
from transformer.files.trainer_folder import trainer_checkpoints, trainer_history, trainer_step
from transformer.heads.sentence_through_training import training_steps

LOG = [
    {"step": 500, "epoch": 1.0, "loss": 3.0, "grad_norm": 1.5, "learning_rate": 1e-3},
    {"step": 500, "epoch": 1.0, "eval_loss": 2.5, "eval_runtime": 0.1},
    {"step": 1000, "epoch": 2.0, "loss": 2.0, "grad_norm": float("nan"), "eval_loss": 10**400, "learning_rate": 5e-4},
    {"step": 1000, "train_runtime": 9.0, "train_loss": 2.5},
    {"loss": 9.0},
    "not an entry",
]


def write_training(folder: Path, steps: tuple[int, ...] = (500, 1000, 1500), kind: str = "hf-gpt2") -> Path:
    """Write checkpoints with different weights at each of ``steps``, the last one with its log."""
    origin = foreign_checkpoint(kind, folder / "origin")
    training = folder / "run"
    for step in steps:
        shutil.copytree(origin, place := training / f"checkpoint-{step}")
        weights = load_file(place / "model.safetensors")
        save_file({name: tensor * (step / steps[-1]) for name, tensor in weights.items()}, place / "model.safetensors")
    (place / "trainer_state.json").write_text(json.dumps({"global_step": steps[-1], "log_history": LOG}))
    return training


@pytest.fixture
def training(tmp_path: Path) -> Path:
    return write_training(tmp_path)


def test_the_folder_opens_as_its_last_checkpoint_with_the_earlier_ones_as_snapshots(training: Path) -> None:
    (training / "checkpoint-2000").mkdir()  # without a model: the training was stopped while it was written
    (training / "runs").mkdir()
    checkpoint = transformer.load(training)
    assert checkpoint.path == training / "checkpoint-1500" and list(trainer_checkpoints(training)) == [500, 1000, 1500]
    assert training_steps(checkpoint) == (500, 1000, 1500)
    early = snapshot(checkpoint, 500)
    one, last = (next(model.parameters()) for model in (early.model, checkpoint.model))
    assert torch.allclose(3 * one, last) and early.fingerprint != checkpoint.fingerprint
    assert training_steps(checkpoint) == (500, 1000, 1500)
    assert training_steps(transformer.load(training / "checkpoint-1000")) == (500, 1000)


def test_a_final_model_in_the_folder_itself_comes_last(training: Path) -> None:
    for file in (training / "checkpoint-1500").iterdir():
        shutil.copy(file, training)
    assert resolve(training) == training and trainer_step(training) == 1500
    assert training_steps(transformer.load(training)) == (500, 1000, 1500)
    (training / "trainer_state.json").unlink()
    assert training_steps(transformer.load(training)) == (500, 1000, 1500, None)
    assert [row["step"] for row in trainer_history(training)] == [500, 1000]


def test_a_broken_or_a_different_earlier_checkpoint_is_one_sentence(training: Path) -> None:
    checkpoint = transformer.load(training)
    (training / "checkpoint-500" / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(transformer.CheckpointError, match="checkpoint-500"):
        snapshot(checkpoint, 500)
    config = training / "checkpoint-1000" / "config.json"
    fields = json.loads(config.read_text())
    config.write_text(json.dumps({**fields, "layer_norm_epsilon": 0.5}))
    with pytest.raises(transformer.CheckpointError, match="^checkpoint-1000 is a model with another configuration"):
        snapshot(checkpoint, 1000)


@pytest.mark.parametrize(
    ("kind", "name", "value"), [("hf-gemma2", "attn_logit_softcapping", 4.0), ("hf-marian", "scale_embedding", False)]
)
def test_an_earlier_checkpoint_that_computes_otherwise_is_no_snapshot(
    kind: str, name: str, value: object, tmp_path: Path
) -> None:
    training = write_training(tmp_path, (500, 1000), kind)
    config = training / "checkpoint-500" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {name: value}))
    with pytest.raises(transformer.CheckpointError, match="^checkpoint-500 is a model with another configuration"):
        snapshot(transformer.load(training), 500)


def test_the_log_is_read_by_step_and_what_is_no_number_is_left_out(training: Path) -> None:
    first, second = trainer_history(training / "checkpoint-1500")
    assert first == {
        **{"step": 500, "epoch": 1.0, "train_loss": 3.0, "gradient_norm": 1.5, "learning_rate": 1e-3},
        **{"dev_loss": 2.5, "dev_perplexity": pytest.approx(12.18, abs=0.01)},
    }
    assert second == {"step": 1000, "epoch": 2.0, "train_loss": 2.0, "learning_rate": 5e-4}
    (training / "checkpoint-1500" / "trainer_state.json").write_text("{")
    assert trainer_history(training / "checkpoint-1500") == []


def test_an_earlier_checkpoint_without_a_log_does_not_show_later_steps(training: Path) -> None:
    assert trainer_history(training / "checkpoint-1500")
    (training / "checkpoint-500" / "trainer_state.json").unlink(missing_ok=True)
    assert trainer_history(training / "checkpoint-500") == []


def test_other_folders_have_no_such_snapshots(tmp_path: Path) -> None:
    origin = foreign_checkpoint("hf-gpt2", tmp_path / "origin")
    assert snapshot_steps(origin) == () and trainer_step(origin) is None and resolve(origin) == origin
