"""A killed run ends bitwise equal to an uninterrupted one, and a run learns."""

from __future__ import annotations

import csv
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import transformer
from tests.transformer.tiny import LAYERS
from transformer import ModelConfig
from transformer.training.recipe import Recipe
from transformer.training.run_state import load_state
from transformer.training.schedule import learning_rate
from transformer.training.start import initial_model
from transformer.training.trainer import Trainer

SUBJECTS = (("I see", "Je vois"), ("You see", "Tu vois"), ("We see", "Nous voyons"), ("They see", "Ils voient"))
NOUNS = (("cat", "chat"), ("dog", "chien"), ("train", "train"), ("book", "livre"), ("garden", "jardin"), ("bus", "bus"))
ENDINGS = (("", ""), (" in the street", " dans la rue"))


def sentences() -> list[tuple[str, str]]:
    return [
        (f"{s} the {n}{e}.", f"{sf} le {nf}{ef}.") for (s, sf), (n, nf), (e, ef) in product(SUBJECTS, NOUNS, ENDINGS)
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 48 pairs in the layouts of three corpora."""
    folder = tmp_path_factory.mktemp("data")
    pairs = sentences()
    train, dev = [p for i, p in enumerate(pairs) if i % 6], pairs[::6]
    for name, line in (("tatoeba-en-fr", "{0}\t{1}\n"), ("sst2", "{0}\t{2}\n")):
        (folder / name).mkdir()
        for split, rows in (("train", train), ("dev", dev)):
            lines = [line.format(en, fr, int("dog" in en)) for en, fr in rows]
            (folder / name / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "tinyshakespeare").mkdir()
    (folder / "tinyshakespeare" / "input.txt").write_text("\n".join(en for en, _ in pairs), encoding="utf-8")
    return folder


def recipe(kind: str = "encoder-decoder", **values: Any) -> Recipe:
    task, corpus = {
        "encoder-decoder": ("translation", "tatoeba-en-fr"),
        "decoder-only": ("next-token", "tinyshakespeare"),
        "encoder-only": ("masked-token", "tatoeba-en"),
    }[kind]
    model = {"vocabulary_size": 300, "d_model": 16, "n_heads": 2, "d_ff": 24, "max_length": 64, "dropout": 0.2}
    layers = {name: min(1, n) for name, n in LAYERS[kind].items()}
    basis = {
        "name": "r", "task": task, "corpus": corpus, "steps": 12, "batch_tokens": 150, "warmup_steps": 3,
        "learning_rate": 5e-3, "log_every": 2, "evaluate_every": 6, "evaluate_sentences": 4, "save_every": 5,
        "average_decay": 0.8, "snapshots": (0, 7),
    }  # fmt: skip
    model |= values.pop("model", {})
    return Recipe(**{**basis, **values}, model=ModelConfig(kind=kind, **layers, **model))


def train(
    data: Path, directory: Path, settings: Recipe, *, stop_after: int | None = None, report: Any = None
) -> Trainer:
    trainer = Trainer(settings, data=data, run_directory=directory, report=report)
    trainer.run(stop_after=stop_after)
    return trainer


def everything(trainer: Trainer) -> dict[str, Any]:
    """Return everything that must be equal: weights, average, optimiser, history without times."""
    state = load_state(trainer.directory)
    tensors = {f"model.{name}": tensor for name, tensor in state["model"].items()}
    if state["average"] is not None:
        tensors |= {f"average.{name}": tensor for name, tensor in state["average"].items()}
    for index, moments in state["optimizer"]["state"].items():
        tensors |= {f"optimizer.{index}.{name}": tensor for name, tensor in moments.items()}
    best = transformer.load(trainer.directory / "best").model
    tensors |= {f"best.{name}": tensor for name, tensor in best.named_parameters()}
    tensors["random"] = state["random"]["cpu"]
    history = [{k: v for k, v in row.items() if k != "seconds"} for row in state["history"]]
    return {"tensors": tensors, "history": history, "step": state["step"], "tokens": state["target_tokens"]}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (one["step"], one["tokens"]) == (other["step"], other["tokens"])
    assert one["history"] == other["history"]
    assert one["tensors"].keys() == other["tensors"].keys()
    for name, tensor in one["tensors"].items():
        assert torch.equal(tensor, other["tensors"][name]), f"{name} differs"


@pytest.fixture(scope="module")
def never_killed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return everything(train(data, tmp_path_factory.mktemp("never-killed"), recipe()))


@pytest.mark.slow
@pytest.mark.parametrize("stops", [(5,), (1, 6, 7, 11)])
def test_a_run_that_was_stopped_gives_the_same_weights(
    stops: tuple[int, ...], data: Path, tmp_path: Path, never_killed: dict[str, Any]
) -> None:
    for stop in stops:
        torch.manual_seed(stop)  # the state of this process must not matter
        assert train(data, tmp_path, recipe(), stop_after=stop).step == stop
    assert_same(everything(train(data, tmp_path, recipe())), never_killed)


class Killed(BaseException):
    pass


def test_a_run_that_was_killed_between_two_saves_gives_the_same_weights(
    data: Path, tmp_path: Path, never_killed: dict[str, Any]
) -> None:
    def kill(row: dict[str, float]) -> None:
        if row["step"] == 8:
            raise Killed

    with pytest.raises(Killed):
        train(data, tmp_path, recipe(), report=kill)
    assert load_state(tmp_path)["step"] == 5
    assert_same(everything(train(data, tmp_path, recipe())), never_killed)


KILL_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
import torch
from tests.transformer.training.test_trainer import recipe, train

whole, n_saves = torch.save, 0

def save(state, path):
    global n_saves
    n_saves += 1
    whole(state, path)
    if n_saves == 2:  # the second save, at step 10: half of it reaches the disk
        raw = Path(path).read_bytes()
        Path(path).write_bytes(raw[: len(raw) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

torch.save = save
train(Path(sys.argv[1]), Path(sys.argv[2]), recipe())
"""


@pytest.mark.slow
def test_a_run_that_was_killed_while_it_wrote_its_state_gives_the_same_weights(
    data: Path, tmp_path: Path, never_killed: dict[str, Any]
) -> None:
    """Kill a run in a separate process by an uncatchable signal, in the middle of the file."""
    root = Path(__file__).resolve().parents[3]
    result = subprocess.run([sys.executable, "-c", KILL_WHILE_WRITING, data, tmp_path], cwd=root, capture_output=True)
    assert result.returncode == -9, result.stderr.decode()[-2000:]
    assert load_state(tmp_path)["step"] == 5
    left_over = [path for path in tmp_path.iterdir() if path.name.startswith(".state.pt")]
    assert len(left_over) == 1, "the half-written file lies beside the state, under another name"
    resumed = train(data, tmp_path, recipe())
    assert_same(everything(resumed), never_killed)
    assert not left_over[0].exists(), "and is swept away when the run goes on"


DISK_FULL = """
import resource, sys
from pathlib import Path
from tests.transformer.training.test_trainer import recipe, train

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    train(Path(sys.argv[1]), Path(sys.argv[2]), recipe())
except OSError as error:
    sys.exit(f"{error}")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "share", [0.01, 0.99, *(pytest.param(share, marks=pytest.mark.nightly) for share in (0.3, 0.6))]
)
def test_a_run_whose_disk_fills_says_so_and_goes_on_when_there_is_room(
    share: float, data: Path, tmp_path: Path, never_killed: dict[str, Any]
) -> None:
    """Limit files to this ``share`` of the largest one, so that writing fails in the middle of a file."""
    train(data, tmp_path, recipe(), stop_after=5)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    most = int(share * max(map(len, before.values())))
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", DISK_FULL, data, tmp_path, str(most)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert ended.returncode == 1 and ended.stderr.count("\n") == 1, ended.stderr[-2000:]
    assert "cannot be written" in ended.stderr and "what was there before is untouched" in ended.stderr
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert before.items() <= after.items() and not [path for path in after if path.name.startswith(".")]
    assert_same(everything(train(data, tmp_path, recipe())), never_killed)


@pytest.mark.parametrize("kind", ["decoder-only", "encoder-only"])
def test_the_other_tasks_resume_exactly_too(kind: str, data: Path, tmp_path: Path) -> None:
    settings = recipe(kind, steps=6, save_every=2, evaluate_every=3, average_decay=0.0)
    whole = everything(train(data, tmp_path / "whole", settings))
    train(data, tmp_path / "stopped", settings, stop_after=3)
    assert_same(everything(train(data, tmp_path / "stopped", settings)), whole)


def test_another_seed_gives_other_weights(data: Path, tmp_path: Path, never_killed: dict[str, Any]) -> None:
    other = everything(train(data, tmp_path, recipe(seed=2)))
    assert any(not torch.equal(t, other["tensors"][n]) for n, t in never_killed["tensors"].items())


# ---- what a run leaves ----------------------------------------------------------------------------------------------


def test_a_run_learns(data: Path, tmp_path: Path) -> None:
    settings = recipe(steps=60, evaluate_every=60, log_every=20, average_decay=0.0, model={"dropout": 0.0})
    trainer = train(data, tmp_path, replace(settings, label_smoothing=0.0, learning_rate=2e-2))
    losses = [row["train_loss"] for row in trainer.history]
    assert losses[0] > 2 * losses[-1]
    assert losses[-1] < 2.0
    translation = transformer.decode(transformer.load(tmp_path / "best"), "I see the dog in the street.").text
    assert translation.startswith("Je vois")


def test_history_snapshots_and_the_best_checkpoint(data: Path, tmp_path: Path) -> None:
    rows: list[dict[str, float]] = []
    trainer = train(data, tmp_path, recipe(), report=rows.append)
    assert [row["step"] for row in rows] == [2, 4, 6, 8, 10, 12]
    assert ["dev_score" in row for row in rows] == [False, False, True, False, False, True]
    for row in rows:
        assert row["learning_rate"] == learning_rate(trainer.recipe, int(row["step"]))
    assert rows == trainer.history
    with (tmp_path / "history.csv").open(newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == [2, 4, 6, 8, 10, 12]
    assert sorted(path.name for path in (tmp_path / "snapshots").iterdir()) == [
        "step-000000.safetensors", "step-000007.safetensors",
    ]  # fmt: skip
    best = transformer.load(tmp_path / "best")
    assert best.config == trainer.recipe.model
    assert best.tokenizer.pieces == trainer.tokenizer.pieces


def test_scores_come_when_they_are_due_whatever_the_log_interval(data: Path, tmp_path: Path) -> None:
    trainer = train(data, tmp_path, recipe(steps=8, evaluate_every=3, log_every=5))
    assert [(row["step"], "dev_score" in row) for row in trainer.history] == [
        (3, True), (5, False), (6, True), (8, True),
    ]  # fmt: skip


def test_what_is_evaluated_and_saved_is_the_moving_average(data: Path, tmp_path: Path) -> None:
    """θ̄ ← decay · θ̄ + (1 − decay) · θ, beginning with the first θ."""
    kept: list[dict[str, torch.Tensor]] = []
    trainer = Trainer(recipe(steps=3, average_decay=0.8), data=data, run_directory=tmp_path)
    for step in (1, 2, 3):
        trainer.run(stop_after=step)
        kept.append({name: p.detach().clone() for name, p in trainer._trained_model.named_parameters()})
    for name, parameter in trainer.model.named_parameters():
        expected = kept[0][name]
        for later in kept[1:]:
            expected = 0.8 * expected + 0.2 * later[name]
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-5, atol=1e-6)
    saved = transformer.load(tmp_path / "best").model
    for name, parameter in saved.named_parameters():
        torch.testing.assert_close(parameter, trainer.model.get_parameter(name), rtol=1e-3, atol=1e-3)


def test_gradients_are_clipped_to_the_norm_of_the_recipe(data: Path, tmp_path: Path) -> None:
    trainer = Trainer(recipe(gradient_clip=0.01, steps=1, log_every=1), data=data, run_directory=tmp_path)
    trainer.run()
    squares = sum(float(p.grad.square().sum()) for p in trainer.objective.parameters() if p.grad is not None)
    assert squares**0.5 == pytest.approx(0.01, rel=1e-3)
    assert trainer.history[0]["gradient_norm"] > 0.01, "the norm in the history is the one before clipping"


def test_a_classifier_begins_with_the_encoder_of_another_checkpoint(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path / "bert", recipe("encoder-only", steps=2, evaluate_every=2))
    start = tmp_path / "bert" / "best"
    settings = recipe("encoder-only", task="classification", corpus="sst2", start_from=str(start), steps=3,
                      model={"class_names": ("no dog", "dog")}, snapshots=(), average_decay=0.0)  # fmt: skip
    trainer = Trainer(settings, data=data, run_directory=tmp_path / "classifier")
    pretrained = transformer.load(start)
    assert trainer.tokenizer.pieces == pretrained.tokenizer.pieces
    for name, parameter in pretrained.model.encoder.named_parameters():
        assert torch.equal(parameter, trainer.model.encoder.get_parameter(name))
    trainer.run()
    assert trainer.history[-1]["dev_score"] in [n / 8 for n in range(9)]
    assert transformer.trace(transformer.load(tmp_path / "classifier" / "best"), "I see the dog.").text in (
        "no dog", "dog",
    )  # fmt: skip


def test_a_decoder_goes_on_with_longer_rows_from_another_checkpoint(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path / "sentences", recipe("decoder-only", steps=2, evaluate_every=2))
    start = tmp_path / "sentences" / "best"
    settings = recipe("decoder-only", task="packed-next-token", corpus="tatoeba-en + tinyshakespeare-passages",
                      start_from=str(start), steps=3, average_decay=0.0, snapshots=())  # fmt: skip
    trainer = Trainer(settings, data=data, run_directory=tmp_path / "passages")
    for name, parameter in transformer.load(start).model.named_parameters():
        assert torch.equal(parameter, trainer.model.get_parameter(name))
    trainer.run()
    assert trainer.step == 3 and math.isfinite(trainer.history[-1]["dev_loss"])


def test_a_model_with_other_positions_learns_its_scores_of_self_attention_anew(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path / "sinusoidal", recipe(steps=2, evaluate_every=2, snapshots=()))
    start = tmp_path / "sinusoidal" / "best"
    settings = recipe(start_from=str(start), fresh_self_attention=True, model={"positions": "rotary"})
    pretrained, model = transformer.load(start).model, initial_model(settings, transformer.load(start).tokenizer)
    weights = {name: torch.equal(weight, model.get_parameter(name)) for name, weight in pretrained.named_parameters()}
    assert {name for name, same in weights.items() if not same} == {
        name for name in weights if re.search(r"\bself_attention\.(query|key)_projection", name)
    }


def test_a_new_token_starts_as_the_mean_of_its_former_tokens(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path / "former", recipe(steps=2, evaluate_every=2, snapshots=()))
    start = tmp_path / "former" / "best"
    settings = recipe(start_from=str(start), new_tokenizer=True, whole_words=4, joined_examples=20, average_decay=0.0,
                      steps=3, snapshots=(), model={"vocabulary_size": 310})  # fmt: skip
    trainer = Trainer(settings, data=data, run_directory=tmp_path / "new")
    former = transformer.load(start)
    old, new = (model.get_parameter("encoder.embedding.table.weight") for model in (former.model, trainer.model))
    for word in ("the", "see", "in"):
        (token,) = trainer.tokenizer.encode(word)
        assert torch.allclose(new[token], old[former.tokenizer.encode(word)].mean(dim=0))
    assert torch.equal(new[:260], old[:260])
    assert len(trainer.corpus.train) == 60
    trainer.run()
    assert trainer.step == 3 and math.isfinite(trainer.history[-1]["dev_loss"])


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda: recipe(model={"d_ff": 32}), "model"),
        (lambda: recipe("decoder-only"), "task, model, corpus"),
    ],
)
def test_a_run_directory_of_another_run_is_refused(
    change: Callable[[], Recipe], what: str, data: Path, tmp_path: Path
) -> None:
    train(data, tmp_path, recipe(), stop_after=1)
    with pytest.raises(ValueError, match=f"holds a run that was started with another {what}; take another"):
        Trainer(change(), data=data, run_directory=tmp_path)


def test_a_run_may_be_made_longer(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path, recipe(steps=4))
    assert train(data, tmp_path, recipe(steps=6)).step == 6


def test_texts_that_are_all_too_long_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no training text of tatoeba-en-fr has at most 2 tokens"):
        Trainer(recipe(max_sequence_length=2), data=data, run_directory=tmp_path)


def test_inner_dropout_is_that_of_attention_weights_and_hidden_units_only(data: Path, tmp_path: Path) -> None:
    trainer = Trainer(recipe(inner_dropout=0.0), data=data, run_directory=tmp_path)
    layer = trainer._trained_model.decoder.layers[0]
    assert (layer.self_attention.dropout, layer.cross_attention.dropout, layer.feed_forward.dropout.p) == (0, 0, 0)
    assert (layer.dropout.p, trainer._trained_model.decoder.embedding.dropout.p) == (0.2, 0.2)
    assert trainer.model.decoder.layers[0].self_attention.dropout == 0.0  # the average is evaluated, not trained


def test_attention_dropout_is_that_of_attention_weights_alone(data: Path, tmp_path: Path) -> None:
    trainer = Trainer(recipe(inner_dropout=0.1, attention_dropout=0.4), data=data, run_directory=tmp_path)
    layer = trainer._trained_model.decoder.layers[0]
    assert (layer.self_attention.dropout, layer.cross_attention.dropout) == (0.4, 0.4)
    assert (layer.feed_forward.dropout.p, layer.dropout.p) == (0.1, 0.2)


def test_after_a_restart_the_own_dropout_changes_and_the_progress_stands_still(data: Path, tmp_path: Path) -> None:
    values = {"steps": 4, "restart_at": 2, "restart_learning_rate": 1e-3, "restart_dropout": 0.4, "inner_dropout": 0.1}
    trainer = Trainer(recipe(**values, warmup_steps=1), data=data, run_directory=tmp_path)
    layer, embedding = trainer._trained_model.decoder.layers[0], trainer._trained_model.decoder.embedding

    def dropouts() -> tuple[float, ...]:
        return layer.dropout.p, embedding.dropout.p, layer.feed_forward.dropout.p, layer.self_attention.dropout

    trainer.run(stop_after=2)
    assert (dropouts(), trainer._own_objective.progress) == ((0.2, 0.2, 0.1, 0.1), 1.0)
    trainer.run(stop_after=3)
    assert (dropouts(), trainer._own_objective.progress) == ((0.4, 0.4, 0.1, 0.1), 1.0)
