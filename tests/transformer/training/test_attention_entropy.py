"""The penalty on spread attention: by a plain loop, during a run, and its effect on attention."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch

from tests.transformer.tiny import random_model
from tests.transformer.training.test_trainer import assert_same, everything, recipe, sentences, train
from tests.transformer.training.test_trainer import data as data  # a fixture
from transformer.models import Model
from transformer.probes import record
from transformer.training.attention_entropy import mean_entropy, price
from transformer.training.card import model_card
from transformer.training.objectives import MaskedToken, NextToken, Objective, Translation
from transformer.training.recipe import Entropy
from transformer.training.trainer import Trainer

PAIRS = [([4, 9, 17, 2], [1, 7, 19, 11, 2]), ([5, 2], [1, 8, 2]), ([2], [1, 2])]
TEXTS = [([1, 4, 9, 2],), ([1, 5, 6, 7, 8, 10, 2],), ([1, 9, 2],)]
CASES = {
    "encoder-decoder": (Translation, PAIRS),
    "decoder-only": (NextToken, TEXTS),
    "encoder-only": (MaskedToken, TEXTS),
}


def entropy_by_a_loop(model: Model, rows: list[list[torch.Tensor]]) -> float:
    """Compute it sentence by sentence without padding, one row of a head at a time."""
    found = []
    for inputs in rows:
        with torch.no_grad(), record() as recording:
            model(*inputs)
        for name, weights in recording.tensors.items():
            if not name.endswith("_attention.weights"):
                continue
            allowed = recording.tensors[name.replace(".weights", ".allowed")][0]
            for head in weights[0]:
                for query, row in enumerate(head):
                    if (n_keys := int(allowed[query].sum())) > 1:
                        found.append(-sum(float(w) * math.log(float(w)) for w in row if w > 0) / math.log(n_keys))
    return math.fsum(found) / len(found)


def recorded_entropy(objective: Objective, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad(), record() as recording:
        objective.hidden_and_targets(batch)
    return mean_entropy(objective.model, recording)


@pytest.mark.parametrize("kind", CASES)
def test_the_entropy_is_that_of_a_plain_loop_over_sentences_without_padding(kind: str) -> None:
    kind_of, examples = CASES[kind]
    objective = kind_of(random_model(kind)).eval()
    batch = objective.collate(examples, torch.Generator().manual_seed(0))
    # shorter texts also have their last token, before the padding
    read = max(len(example[-1]) for example in examples) - 1
    if kind == "encoder-decoder":
        rows = [[torch.tensor([source]), torch.tensor([target[:read]])] for source, target in examples]
    elif kind == "decoder-only":
        rows = [[torch.tensor([ids[:read]])] for (ids,) in examples]
    else:  # the batch as shown, with its masks
        rows = [[row[None, : len(ids)]] for row, (ids,) in zip(batch["ids"], examples, strict=True)]
    expected = entropy_by_a_loop(objective.model, rows)
    assert 0.1 < expected < 0.999
    assert float(recorded_entropy(objective, batch)) == pytest.approx(expected, rel=1e-4)


def test_attention_without_a_preference_costs_all_of_it_and_a_choice_nothing() -> None:
    objective = NextToken(random_model("decoder-only", n_decoder_layers=1)).eval()
    batch = objective.collate(TEXTS, torch.Generator())
    name = "decoder.layers.0.self_attention.weights"
    with record() as recording:
        objective.hidden_and_targets(batch)
    allowed = recording.tensors["decoder.layers.0.self_attention.allowed"]
    evenly = (allowed / allowed.sum(dim=-1, keepdim=True))[:, None].expand(-1, 2, -1, -1)
    recording.tensors[name] = evenly
    assert float(mean_entropy(objective.model, recording)) == pytest.approx(1.0, abs=1e-6)
    first = torch.zeros_like(evenly)
    first[..., 0] = 1.0
    recording.tensors[name] = first.requires_grad_()
    entropy = mean_entropy(objective.model, recording)
    entropy.backward()
    assert entropy.item() == 0.0
    assert torch.isfinite(first.grad).all(), "the derivative of w ln w at 0"


def test_it_is_paid_for_every_prediction_while_training_only() -> None:
    objective = NextToken(copy.deepcopy(random_model("decoder-only", dropout=0.0)))
    batch = objective.collate(TEXTS, torch.Generator())
    plain, count = objective.train()(batch)
    objective.entropy, objective.progress = (lambda progress: 2.0 * progress), 0.25
    entropy = float(recorded_entropy(objective, batch))
    loss, same = objective(batch)
    assert count == same
    assert float(loss - plain) == pytest.approx(0.5 * entropy * count, rel=1e-3)
    assert float(objective.eval()(batch)[0]) == pytest.approx(float(plain), rel=1e-6)


def test_the_price_falls_to_nothing_at_the_end() -> None:
    assert [price(0.4, 0.5, progress) for progress in (0.0, 0.5, 0.75, 1.0)] == pytest.approx([0.4, 0.4, 0.2, 0.0])
    assert [price(0.4, 0.0, progress) for progress in (0.0, 0.5, 1.0)] == pytest.approx([0.4, 0.2, 0.0])


@pytest.mark.slow
def test_a_run_with_a_price_looks_at_fewer_tokens_than_one_without(data: Path, tmp_path: Path) -> None:
    def spread(settings: object, name: str) -> float:
        trainer = train(data, tmp_path / name, settings)
        objective = Translation(trainer.model.eval())
        batch = objective.collate(objective.encode(trainer.tokenizer, sentences()), torch.Generator())
        return float(recorded_entropy(objective, batch))

    values = {"steps": 60, "evaluate_every": 60, "save_every": 60}
    without, with_price = recipe(**values), recipe(**values, entropy=Entropy(penalty=3.0, falls_from=0.9))
    assert spread(with_price, "with") < spread(without, "without") - 0.1


@pytest.mark.slow
def test_a_run_with_a_price_that_was_stopped_gives_the_same_weights(data: Path, tmp_path: Path) -> None:
    settings = recipe("encoder-only", entropy=Entropy(penalty=0.5))
    train(data, tmp_path / "stopped", settings, stop_after=7)
    stopped = everything(train(data, tmp_path / "stopped", settings))
    never = everything(train(data, tmp_path / "never", settings))
    assert_same(stopped, never)
    scored = [row for row in never["history"] if "dev_score" in row]
    assert [row["step"] for row in scored] == [6, 12]


def test_the_objective_of_a_recipe_knows_its_price(data: Path, tmp_path: Path) -> None:
    trainer = Trainer(recipe(entropy=Entropy(0.5, 0.2)), data=data, run_directory=tmp_path)
    assert trainer._own_objective.entropy(0.2) == 0.5
    assert trainer._own_objective.entropy(0.6) == pytest.approx(0.25)
    assert Trainer(recipe(), data=data, run_directory=tmp_path)._own_objective.entropy is None


def test_the_card_names_the_entropy_penalty(data: Path, tmp_path: Path) -> None:
    settings = recipe(entropy=Entropy(0.25), evaluate_every=2)
    card = model_card(train(data, tmp_path / "with", settings, stop_after=2))
    assert "| entropy penalty | uniform attention cost 0.25 nats per prediction" in card
    without = model_card(train(data, tmp_path / "without", recipe(evaluate_every=2), stop_after=2))
    assert "entropy penalty" not in without
