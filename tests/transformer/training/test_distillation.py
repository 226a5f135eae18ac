"""Distillation: the loss by its formula, which model learns, and what a run with a teacher stores."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from tests.transformer.tiny import random_model
from tests.transformer.training.test_attention_entropy import CASES
from tests.transformer.training.test_trainer import assert_same, everything, recipe, sentences, train
from tests.transformer.training.test_trainer import data as data  # a fixture
from transformer.text.tokenizer import PAD_ID, Tokenizer
from transformer.training.card import model_card
from transformer.training.objectives import Teacher
from transformer.training.trainer import Trainer


def quiet(kind: str, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    model = copy.deepcopy(random_model(kind, dropout=0.0))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_loss_is_that_of_the_formula(kind: str, weight: float) -> None:
    objective_of, examples = CASES[kind]
    objective, teacher = objective_of(quiet(kind, 1), 0.1), objective_of(quiet(kind, 2))
    batch = objective.collate(examples, torch.Generator().manual_seed(0))
    objective.teacher = Teacher(teacher, weight)
    loss, count = objective.train()(batch)
    with torch.no_grad():
        hidden, targets = objective.hidden_and_targets(batch)
        logits = objective.model.project(hidden).double()
        q = teacher.model.project(teacher.hidden_and_targets(batch)[0]).double().softmax(dim=-1)
    text = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none", label_smoothing=0.1)
    taught = -(q * logits.log_softmax(dim=-1)).sum(dim=-1)
    rows = targets != PAD_ID
    assert count == int(rows.sum())
    assert float(loss) == pytest.approx(float(((1 - weight) * text + weight * taught)[rows].sum()), rel=1e-4)


def test_only_the_student_learns_and_only_while_training() -> None:
    objective_of, examples = CASES["decoder-only"]
    objective, teacher = objective_of(quiet("decoder-only", 1)), objective_of(quiet("decoder-only", 2))
    batch = objective.collate(examples, torch.Generator())
    plain = float(objective.eval()(batch)[0])
    objective.teacher = Teacher(teacher, 0.5)
    assert float(objective(batch)[0]) == pytest.approx(plain, rel=1e-6)
    objective.train()(batch)[0].backward()
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert all(parameter.grad is not None for parameter in objective.parameters())
    assert not any("teacher" in name for name, _ in objective.named_parameters())


def test_who_knows_what_its_teacher_knows_has_nothing_to_learn() -> None:
    objective_of, examples = CASES["encoder-decoder"]
    model = quiet("encoder-decoder", 1)
    objective = objective_of(model)
    objective.teacher = Teacher(objective_of(copy.deepcopy(model)), 1.0)
    objective.train()(objective.collate(examples, torch.Generator()))[0].backward()
    assert max(float(parameter.grad.abs().max()) for parameter in objective.parameters()) < 1e-4


def test_a_run_with_a_teacher_that_was_stopped_gives_the_same_weights(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path / "first", recipe(steps=2, evaluate_every=2, snapshots=()))
    first = str(tmp_path / "first" / "best")
    settings = recipe(start_from=first, teacher=first, teacher_weight=0.7)
    train(data, tmp_path / "stopped", settings, stop_after=7)
    stopped = train(data, tmp_path / "stopped", settings)
    assert_same(everything(stopped), everything(train(data, tmp_path / "never", settings)))
    card = model_card(stopped)
    assert "| teacher model | the checkpoint `best`: a share of 0.7 of the loss" in card
    alone = everything(train(data, tmp_path / "alone", recipe(start_from=first)))
    ours = everything(stopped)
    assert any(not torch.equal(ours["tensors"][name], alone["tensors"][name]) for name in ours["tensors"])


def test_a_teacher_of_other_tokens_is_refused(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path / "first", recipe("decoder-only", steps=2, evaluate_every=2, snapshots=()))
    settings = recipe(teacher=str(tmp_path / "first" / "best"))
    with pytest.raises(ValueError, match=r"teacher is '.*best' \(decoder-only, 300 tokens\); .*\(encoder-decoder, 300"):
        Trainer(settings, data=data, run_directory=tmp_path / "run")


def test_a_teacher_with_as_many_other_tokens_is_refused(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path / "first", recipe(steps=2, evaluate_every=2, snapshots=()))
    teacher = tmp_path / "first" / "best"
    other = Tokenizer.train([text.upper() for pair in sentences() for text in pair], 300)
    other.save(teacher / "tokenizer.json")
    assert other.vocabulary_size == 300
    with pytest.raises(ValueError, match=r"teacher is '.*best'; its tokens are not those of this run"):
        Trainer(recipe(teacher=str(teacher)), data=data, run_directory=tmp_path / "run")
