"""A run on masked tokens and next sentences: it resumes, is scored, opens, and has a card."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import torch

import transformer
from tests.transformer.training.test_trainer import assert_same, everything, recipe, sentences, train
from transformer.runs.next_sentence import next_sentence
from transformer.training.card import model_card
from transformer.training.objectives import MaskedTokenNextSentence
from transformer.training.recipe import Recipe
from transformer.training.trainer import Trainer


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences, and pairs of which those with equal first words follow each other."""
    folder = tmp_path_factory.mktemp("pairs")
    texts = [english for english, _ in sentences()]
    for split, own in (("train", texts[12:]), ("dev", texts[:12])):
        rows = {
            "tatoeba-en-fr": [f"{text}\tf" for text in own],
            "tatoeba-pairs": [f"{one}\t{two}\t{int(one[:5] != two[:5])}" for one in own for two in own[::4]],
        }
        for name, lines in rows.items():
            (folder / name).mkdir(exist_ok=True)
            (folder / name / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def settings(**values: Any) -> Recipe:
    basis = {"task": "masked-token-next-sentence", "corpus": "tatoeba-en + tatoeba-pairs", "model": {"n_segments": 2}}
    return recipe("encoder-only", **{**basis, **values})


def test_a_run_that_was_stopped_gives_the_same_weights(data: Path, tmp_path: Path) -> None:
    train(data, tmp_path / "stopped", settings(), stop_after=7)
    assert_same(
        everything(train(data, tmp_path / "stopped", settings())),
        everything(train(data, tmp_path / "never", settings())),
    )


def test_a_finished_run_opens_and_its_files_say_how_often_it_was_right(data: Path, tmp_path: Path) -> None:
    trainer = train(data, tmp_path, settings(next_sentence_weight=3.0))
    rows = list(csv.DictReader((tmp_path / "history.csv").open(encoding="utf-8")))
    scored = [float(row["next_sentence_accuracy"]) for row in rows if row["dev_score"]]
    assert len(scored) == 2 and all(0 <= accuracy <= 1 for accuracy in scored)
    card = model_card(trainer)
    assert "| task | masked-token-next-sentence |" in card
    assert "their mean loss counts 3 times beside that of masked tokens" in card and "Liu et al. 2019" in card
    checkpoint = transformer.load(tmp_path / "best")
    trace = transformer.trace(checkpoint, "The dog sleeps. || The dog is ___.")
    assert next_sentence(trace).name in ("IsNext", "NotNext")


def test_the_weight_of_a_recipe_counts_in_training_alone(data: Path, tmp_path: Path) -> None:
    objective = Trainer(settings(next_sentence_weight=3.0), data=data, run_directory=tmp_path)._own_objective
    assert isinstance(objective, MaskedTokenNextSentence) and objective.weight == 3.0
    batch = {"next_sentence": torch.tensor([0, 1, MaskedTokenNextSentence.NO_PAIR])}
    hidden = torch.randn(3, 5, 16)
    training, evaluating = (float(objective.train(mode).sentence_loss(hidden, batch)) for mode in (True, False))
    assert training == pytest.approx(3 * evaluating) and evaluating > 0
