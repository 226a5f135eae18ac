"""One small set of corpora, recipes and runs for all tests of training."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import transformer
from tests.transformer.tiny import LAYERS
from transformer.config import LEVELS, ModelConfig
from transformer.training.recipe import Recipe
from transformer.training.run_state import load_state
from transformer.training.trainer import Trainer

SUBJECTS = (("I see", "Je vois"), ("You see", "Tu vois"), ("We see", "Nous voyons"), ("They see", "Ils voient"))
NOUNS = (("cat", "chat"), ("dog", "chien"), ("train", "train"), ("book", "livre"), ("garden", "jardin"), ("bus", "bus"))
ENDINGS = (("", ""), (" in the street", " dans la rue"))


def sentences() -> list[tuple[str, str]]:
    return [
        (f"{s} the {n}{e}.", f"{sf} le {nf}{ef}.") for (s, sf), (n, nf), (e, ef) in product(SUBJECTS, NOUNS, ENDINGS)
    ]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 40 pairs for training and 8 for development in the layout of every corpus.

    A text with a dog is of class 1; sentences with equal first words follow each other.
    """
    folder, pairs = tmp_path_factory.mktemp("data"), sentences()
    images = [LEVELS[shade] * 64 for shade in range(17)] * 6
    for split, own in (("train", [pair for i, pair in enumerate(pairs) if i % 6]), ("dev", pairs[::6])):
        texts = [english for english, _ in own]
        follow = [f"{one}\t{two}\t{int(one[:5] != two[:5])}" for one in texts for two in texts[::4]]
        rows = {
            "tatoeba-en-fr": [f"{english}\t{french}" for english, french in own],
            "sst2": [f"{text}\t{int('dog' in text)}" for text in texts],
            **dict.fromkeys(("tatoeba-pairs", "tinyshakespeare-pairs"), follow),
            "digits": [f"{image}\t{index % 10}" for index, image in enumerate(images)],
        }
        files = {f"{name}/{split}.tsv": lines for name, lines in rows.items()}
        for language in ("de", "fr"):
            files[f"multi30k-en-{language}/{'val' if split == 'dev' else split}.en"] = texts
            files[f"multi30k-en-{language}/{'val' if split == 'dev' else split}.{language}"] = [o for _, o in own]
        for name, lines in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def recipe(kind: str = "encoder-decoder", **values: Any) -> Recipe:
    """Return a short recipe of a tiny model."""
    task, corpus = {
        "encoder-decoder": ("translation", "tatoeba-en-fr"),
        "decoder-only": ("next-token", "tatoeba-en"),
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


def shortened(whole: Recipe) -> Recipe:
    """Return a recipe of two steps with a small model, from random weights and without a teacher model."""
    layers = {name: min(1, getattr(whole.model, name)) for name in ("n_encoder_layers", "n_decoder_layers")}
    words = {} if whole.model.reads_images else {"vocabulary_size": 300}
    # Accelerate allows only one precision per process.
    few = {"steps": 2, "warmup_steps": 1, "evaluate_every": 2, "evaluate_sentences": 2, "precision": "float32"}
    off = {"restart_at": 0, "restart_dropout": None, "start_from": "", "new_tokenizer": False, "teacher": ""}
    at_most = {name: min(5, getattr(whole, name)) for name in ("whole_words", "joined_examples")}
    model = replace(whole.model, d_model=16, n_heads=2, d_ff=24, **layers, **words)
    return replace(whole, model=model, snapshots=(2,), **few, **off, **at_most)


def train(
    data: Path, directory: Path, settings: Recipe, *, stop_after: int | None = None, report: Any = None
) -> Trainer:
    """Run a recipe up to its end or a step."""
    trainer = Trainer(settings, data=data, run_directory=directory, report=report)
    trainer.run(stop_after=stop_after)
    return trainer


def everything(directory: Path) -> dict[str, Any]:
    """Return everything that must be equal: weights, average, optimiser, history without times."""
    state = load_state(directory)
    tensors = {f"model.{name}": tensor for name, tensor in state["model"].items()}
    if state["average"] is not None:
        tensors |= {f"average.{name}": tensor for name, tensor in state["average"].items()}
    for index, moments in state["optimizer"]["state"].items():
        tensors |= {f"optimizer.{index}.{name}": tensor for name, tensor in moments.items()}
    best = transformer.load(directory / "best").model
    tensors |= {f"best.{name}": tensor for name, tensor in best.named_parameters()}
    tensors["random"] = state["random"]["cpu"]
    history = [{k: v for k, v in row.items() if k != "seconds"} for row in state["history"]]
    return {"tensors": tensors, "history": history, "step": state["step"], "tokens": state["target_tokens"]}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Compare two results of ``everything`` bit by bit."""
    for name in ("step", "tokens", "history"):
        assert one[name] == other[name], name
    assert one["tensors"].keys() == other["tensors"].keys()
    for name, tensor in one["tensors"].items():
        assert torch.equal(tensor, other["tensors"][name]), f"{name} differs"
