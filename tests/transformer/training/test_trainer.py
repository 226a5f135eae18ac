"""A killed run ends bitwise equal to an uninterrupted one, and a run learns."""

from __future__ import annotations

import csv
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import transformer
from tests.conftest import ROOT
from tests.transformer.training.conftest import assert_same, everything, recipe, sentences, train
from transformer.files.model_card import HISTORY
from transformer.runs.next_sentence import next_sentence
from transformer.text.tokenizer import Tokenizer
from transformer.training.card import model_card
from transformer.training.objectives import MaskedTokenNextSentence
from transformer.training.recipe import Entropy, Recipe
from transformer.training.run_state import COLUMNS, load_state, save_state, write_history
from transformer.training.start import initial_model
from transformer.training.trainer import Trainer

SHORT = {"steps": 2, "evaluate_every": 2, "snapshots": ()}


@pytest.fixture(scope="module")
def never_killed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("never-killed")
    train(data, folder, recipe())
    return everything(folder)


@pytest.fixture(scope="module")
def first(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of two steps, which other runs start from or learn from."""
    folder = tmp_path_factory.mktemp("first")
    train(data, folder, recipe(**SHORT))
    return folder / "best"


@pytest.mark.slow
def test_a_run_that_was_stopped_gives_the_same_weights(data: Path, tmp_path: Path, never_killed: dict[str, Any]):
    for stop in (1, 6, 7, 11):
        torch.manual_seed(stop)  # the state of this process must not matter
        assert train(data, tmp_path, recipe(), stop_after=stop).step == stop
    train(data, tmp_path, recipe())
    assert_same(everything(tmp_path), never_killed)


OTHER_RUNS = {
    "decoder-only": ("decoder-only", {}),
    "encoder-only": ("encoder-only", {}),
    "teacher": ("encoder-decoder", {"teacher_weight": 0.7}),
}


@pytest.mark.parametrize("run", OTHER_RUNS)
def test_other_runs_resume_exactly_too(run: str, data: Path, tmp_path: Path, first: Path) -> None:
    kind, more = OTHER_RUNS[run]
    more = {**more, "start_from": str(first), "teacher": str(first)} if run == "teacher" else more
    settings = recipe(kind, steps=6, save_every=2, evaluate_every=3, average_decay=0.0, **more)
    train(data, tmp_path / "whole", settings)
    train(data, tmp_path / "stopped", settings, stop_after=3)
    stopped = train(data, tmp_path / "stopped", settings)
    whole = everything(tmp_path / "whole")
    assert_same(everything(tmp_path / "stopped"), whole)
    if run == "teacher":
        assert "`teacher = best`, `teacher_weight = 0.7`" in model_card(stopped)
        train(data, tmp_path / "alone", replace(settings, teacher=""))
        alone = everything(tmp_path / "alone")["tensors"]
        assert any(not torch.equal(tensor, alone[name]) for name, tensor in whole["tensors"].items())


@pytest.mark.slow
@pytest.mark.sample("file")
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("file", ["5", "8", "15"])  # of the best checkpoint, the state at step 4, of the publication
def test_a_run_that_is_killed_while_it_writes(processes: int, file: str, data: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.transformer.training.killing", data, tmp_path, str(processes), file]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert int(ended.stdout) > 15, "files that an uninterrupted run writes"


DISK_FULL = """
import resource, sys
from pathlib import Path
from tests.transformer.training.conftest import recipe, train

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    train(Path(sys.argv[1]), Path(sys.argv[2]), recipe())
except OSError as error:
    sys.exit(f"{error}")
"""


@pytest.mark.slow
@pytest.mark.sample("share")
@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
def test_a_run_whose_disk_fills_says_so_and_goes_on_when_there_is_room(
    share: float, data: Path, tmp_path: Path, never_killed: dict[str, Any]
) -> None:
    """Limit files to this ``share`` of the largest one, so that writing fails in the middle of a file."""
    train(data, tmp_path, recipe(), stop_after=5)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    most = int(share * max(map(len, before.values())))
    command = [sys.executable, "-c", DISK_FULL, data, tmp_path, str(most)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1 and ended.stderr.count("\n") == 1, ended.stderr[-2000:]
    assert "cannot be written" in ended.stderr and "what was there before is untouched" in ended.stderr
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert before.items() <= after.items() and not [path for path in after if path.name.startswith(".")]
    train(data, tmp_path, recipe())
    assert_same(everything(tmp_path), never_killed)


def test_a_run_may_be_made_longer(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path, recipe(steps=4))
    assert train(data, tmp_path, recipe(steps=6)).step == 6


# ---- the files of a run ---------------------------------------------------------------------------------------------


def test_a_state_without_its_step_does_not_begin_again(data: Path, tmp_path: Path) -> None:
    settings = recipe(steps=6)
    train(data, tmp_path, settings, stop_after=3)
    state = load_state(tmp_path)
    early = {name: value for name, value in state.items() if not name.startswith("recent_")}
    save_state(tmp_path, early)
    assert train(data, tmp_path, settings, stop_after=3).step == 3
    save_state(tmp_path, {name: value for name, value in early.items() if name != "step"})
    with pytest.raises(KeyError, match="step"):
        train(data, tmp_path, settings)


def test_a_history_has_columns_that_only_some_rows_have(tmp_path: Path) -> None:
    rows = [{"step": 2, "train_loss": 1 / 3}, {"step": 4, "dev_score": 12.3456789, "next_sentence_accuracy": 7}]
    write_history(tmp_path / HISTORY, rows)
    with (tmp_path / HISTORY).open(newline="") as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == [*COLUMNS, "next_sentence_accuracy"]
    assert [row["next_sentence_accuracy"] for row in read] == ["", "7"]
    assert (read[0]["step"], read[0]["train_loss"], read[0]["dev_score"]) == ("2", "0.333333", "")
    assert read[1]["dev_score"] == "12.3457"


# ---- what a run learns ----------------------------------------------------------------------------------------------


def test_a_run_learns(data: Path, tmp_path: Path) -> None:
    settings = recipe(steps=60, evaluate_every=60, log_every=20, average_decay=0.0, model={"dropout": 0.0})
    trainer = train(data, tmp_path, replace(settings, label_smoothing=0.0, learning_rate=2e-2))
    losses = [row["train_loss"] for row in trainer.history]
    assert losses[0] > 2 * losses[-1]
    assert losses[-1] < 2.0
    translation = transformer.decode(transformer.load(tmp_path / "best"), "I see the dog in the street.").text
    assert translation.startswith("Je vois")


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


def test_inner_dropout_is_that_of_attention_weights_and_hidden_units_only(data: Path, tmp_path: Path) -> None:
    for values, attention in (({}, 0.1), ({"attention_dropout": 0.4}, 0.4)):
        trainer = Trainer(recipe(inner_dropout=0.1, **values), data=data, run_directory=tmp_path)
        layer, embedding = trainer._trained_model.decoder.layers[0], trainer._trained_model.decoder.embedding
        assert (layer.self_attention.dropout, layer.cross_attention.dropout) == (attention, attention)
        assert (layer.feed_forward.dropout.p, layer.dropout.p, embedding.dropout.p) == (0.1, 0.2, 0.2)


def test_after_a_restart_the_own_dropout_changes_and_the_progress_stands_still(data: Path, tmp_path: Path) -> None:
    values = {"steps": 4, "restart_at": 2, "restart_learning_rate": 1e-3, "restart_dropout": 0.4, "inner_dropout": 0.1}
    trainer = Trainer(recipe(**values, warmup_steps=1), data=data, run_directory=tmp_path)
    layer, embedding = trainer._trained_model.decoder.layers[0], trainer._trained_model.decoder.embedding
    for stop, own in ((2, 0.2), (3, 0.4)):
        trainer.run(stop_after=stop)
        inner = layer.feed_forward.dropout.p, layer.self_attention.dropout
        assert (layer.dropout.p, embedding.dropout.p, *inner) == (own, own, 0.1, 0.1)
        assert trainer._own_objective.progress == 1.0


def test_the_objective_of_a_recipe_knows_its_price_and_its_weight(data: Path, tmp_path: Path) -> None:
    def objective(settings: Recipe) -> Any:
        return Trainer(settings, data=data, run_directory=tmp_path)._own_objective

    entropy = objective(recipe(entropy=Entropy(0.5, 0.2))).entropy
    assert (entropy(0.2), entropy(0.6)) == (0.5, pytest.approx(0.25))
    assert objective(recipe()).entropy is None
    pairs = objective(of_pairs())
    assert isinstance(pairs, MaskedTokenNextSentence) and pairs.weight == 3.0
    batch, hidden = {"next_sentence": torch.tensor([0, 1, pairs.NO_PAIR])}, torch.randn(3, 5, 16)
    training, evaluating = (float(pairs.train(mode).sentence_loss(hidden, batch)) for mode in (True, False))
    assert training == pytest.approx(3 * evaluating) and evaluating > 0


def of_pairs() -> Recipe:
    task, corpus = "masked-token-next-sentence", "tatoeba-en + tatoeba-pairs"
    more = {"next_sentence_weight": 3.0, "inner_dropout": 0.0, "model": {"n_segments": 2}}
    return recipe("encoder-only", task=task, corpus=corpus, **more)


def test_a_run_on_next_sentences_opens_and_its_files_say_how_often_it_was_right(data: Path, tmp_path: Path) -> None:
    trainer = train(data, tmp_path, of_pairs())
    rows = list(csv.DictReader((tmp_path / HISTORY).open(encoding="utf-8")))
    scored = [float(row["next_sentence_accuracy"]) for row in rows if row["dev_score"]]
    assert len(scored) == 2 and all(0 <= accuracy <= 1 for accuracy in scored)
    card = model_card(trainer)
    assert "| task | masked-token-next-sentence |" in card
    assert "`inner_dropout = 0.0`" in card and "`next_sentence_weight = 3.0`" in card and "teacher" not in card
    trace = transformer.trace(transformer.load(tmp_path / "best"), "The dog sleeps. || The dog is ___.")
    assert next_sentence(trace).name in ("IsNext", "NotNext")


# ---- what a run starts from -----------------------------------------------------------------------------------------


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
    trace = transformer.trace(transformer.load(tmp_path / "classifier" / "best"), "I see the dog.")
    assert trace.text in ("no dog", "dog")


def test_a_model_with_other_positions_learns_its_scores_of_self_attention_anew(first: Path) -> None:
    settings = recipe(start_from=str(first), fresh_self_attention=True, model={"positions": "rotary"})
    pretrained, model = transformer.load(first).model, initial_model(settings, transformer.load(first).tokenizer)
    weights = {name: torch.equal(weight, model.get_parameter(name)) for name, weight in pretrained.named_parameters()}
    assert {name for name, same in weights.items() if not same} == {
        name for name in weights if re.search(r"\bself_attention\.(query|key)_projection", name)
    }


def test_a_new_token_starts_as_the_mean_of_its_former_tokens(data: Path, tmp_path: Path, first: Path) -> None:
    settings = recipe(start_from=str(first), new_tokenizer=True, whole_words=4, joined_examples=20, average_decay=0.0,
                      steps=3, snapshots=(), model={"vocabulary_size": 310})  # fmt: skip
    trainer = Trainer(settings, data=data, run_directory=tmp_path / "new")
    former = transformer.load(first)
    old, new = (model.get_parameter("encoder.embedding.table.weight") for model in (former.model, trainer.model))
    for word in ("the", "see", "in"):
        (token,) = trainer.tokenizer.encode(word)
        assert torch.allclose(new[token], old[former.tokenizer.encode(word)].mean(dim=0))
    assert torch.equal(new[:260], old[:260])
    assert len(trainer.corpus.train) == 60
    trainer.run()
    assert trainer.step == 3 and math.isfinite(trainer.history[-1]["dev_loss"])


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_a_run_directory_of_another_run_is_refused(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path, recipe(), stop_after=1)
    for changed, what in ((recipe(model={"d_ff": 32}), "model"), (recipe("decoder-only"), "task, model")):
        with pytest.raises(ValueError, match=f"holds a run that was started with another {what}; take another"):
            Trainer(changed, data=data, run_directory=tmp_path)


def test_texts_that_are_all_too_long_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no training text of tatoeba-en-fr has at most 2 tokens"):
        Trainer(recipe(max_sequence_length=2), data=data, run_directory=tmp_path)


def test_a_teacher_of_other_tokens_is_refused(data: Path, tmp_path: Path) -> None:
    for kind, words in (
        ("decoder-only", r" \(decoder-only, 300 tokens\); .*\(encoder-decoder, 300"),
        ("encoder-decoder", "; its tokens are not those of this run"),
    ):
        train(data, tmp_path / kind, recipe(kind, **SHORT))
        teacher = tmp_path / kind / "best"
        other = Tokenizer.train([text.upper() for pair in sentences() for text in pair], 300)
        assert other.vocabulary_size == 300, "as many others"
        other.save(teacher / "tokenizer.json")
        with pytest.raises(ValueError, match=f"teacher is '.*best'{words}"):
            Trainer(recipe(teacher=str(teacher)), data=data, run_directory=tmp_path / f"{kind} run")
