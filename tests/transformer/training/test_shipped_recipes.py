"""Each recipe in configs/ trains: two steps of a smaller model on a few lines of every corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import transformer
from tests.conftest import ROOT
from tests.transformer.training.test_trainer import sentences
from transformer.config import LEVELS, PictureConfig
from transformer.training.recipe import Recipe, load_recipe
from transformer.training.trainer import Trainer

RECIPES = sorted((ROOT / "configs").glob("*.toml"))
SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 24}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a few lines in the layout of every corpus."""
    folder = tmp_path_factory.mktemp("corpora")
    pairs = sentences()
    images = [LEVELS[shade] * 64 for shade in range(17)]
    rows = {
        "tatoeba-en-fr": [f"{english}\t{french}" for english, french in pairs],
        "sst2": [f"{english}\t{index % 2}" for index, (english, _) in enumerate(pairs)],
        "tatoeba-pairs": [f"{english}\t{english}\t{index % 2}" for index, (english, _) in enumerate(pairs)],
        "tinyshakespeare-pairs": [f"{english}\t{english}\t{index % 2}" for index, (english, _) in enumerate(pairs)],
        "digits": [f"{image}\t{index % 10}" for index, image in enumerate(images * 6)],
    }
    files = {f"{name}/{split}.tsv": lines for name, lines in rows.items() for split in ("train", "dev")}
    for language in ("de", "fr"):
        for split in ("train", "val"):
            files[f"multi30k-en-{language}/{split}.en"] = [english for english, _ in pairs]
            files[f"multi30k-en-{language}/{split}.{language}"] = [other for _, other in pairs]
    for name, lines in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def shortened(recipe: Recipe) -> Recipe:
    """Return a recipe of two steps with a small model, from random weights and without a teacher model."""
    layers = {name: min(1, getattr(recipe.model, name)) for name in ("n_encoder_layers", "n_decoder_layers")}
    words = {} if isinstance(recipe.model, PictureConfig) else {"vocabulary_size": 300}
    return replace(
        recipe,
        model=replace(recipe.model, **SMALL, **layers, **words),
        steps=2,
        warmup_steps=1,
        restart_at=0,
        restart_dropout=None,
        evaluate_every=2,
        evaluate_sentences=2,
        snapshots=(2,),
        precision="float32",  # Accelerate allows only one precision per process
        start_from="",
        new_tokenizer=False,
        teacher="",
        whole_words=min(5, recipe.whole_words),
        joined_examples=min(5, recipe.joined_examples),
    )


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_two_steps_of_every_shipped_recipe_end_in_a_checkpoint_that_opens(path: Path, corpora: Path, tmp_path: Path):
    trainer = Trainer(shortened(load_recipe(path)), data=corpora, run_directory=tmp_path)
    trainer.run()
    assert trainer.step == 2 and trainer.history[-1]["dev_loss"] > 0
    best = transformer.load(tmp_path / "best")
    assert best.config == trainer.recipe.model
    assert (tmp_path / "snapshots" / "step-000002.safetensors").is_file()
