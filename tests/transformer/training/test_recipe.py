"""A recipe is valid, or the error names the file and the entry; each recipe in configs/ trains."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import transformer
from tests.conftest import ROOT
from tests.transformer.tiny import config
from tests.transformer.training.conftest import shortened
from transformer.training.recipe import Entropy, Recipe, load_recipe
from transformer.training.schedule import learning_rate
from transformer.training.trainer import Trainer

MINIMAL = 'name = "n"\ntask = "translation"\ncorpus = "tatoeba-en-fr"\n[model]\nd_model = 32\nn_heads = 4\n'


def recipe(**values: Any) -> Recipe:
    basis = {"name": "n", "task": "translation", "corpus": "tatoeba-en-fr", "model": config(max_length=64)}
    return Recipe(**{**basis, **values})


# ---- the shipped ones -----------------------------------------------------------------------------------------------


@pytest.mark.sample("path", of=4)
@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.toml")), ids=lambda path: path.stem)
def test_two_steps_of_every_shipped_recipe_end_in_a_checkpoint_that_opens(path: Path, data: Path, tmp_path: Path):
    shipped = load_recipe(path)
    assert shipped.name == path.stem
    assert max(shipped.snapshots, default=0) <= shipped.steps > shipped.warmup_steps
    trainer = Trainer(shortened(shipped), data=data, run_directory=tmp_path)
    trainer.run()
    assert trainer.step == 2 and trainer.history[-1]["dev_loss"] > 0
    assert transformer.load(tmp_path / "best").config == trainer.recipe.model
    assert (tmp_path / "snapshots" / "step-000002.safetensors").is_file()


# ---- what is wrong --------------------------------------------------------------------------------------------------


def test_a_recipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text("snapshots = [0, 5]\nsteps = 7\n" + MINIMAL)
    loaded = load_recipe(path)
    assert (loaded.name, loaded.steps, loaded.snapshots) == ("n", 7, (0, 5))
    assert (loaded.model.d_model, loaded.model.n_heads) == (32, 4)
    assert hash(loaded)
    with pytest.raises(ValueError, match=r"there is no recipe .*nothing.toml; the shipped ones are in configs/"):
        load_recipe(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("= 3", "not valid TOML"),
        ("step = 3\n" + MINIMAL, "step"),
        (MINIMAL + "layers = 3\n", "layers"),
        ('name = "n"\ntask = "translation"\n', "corpus"),
        (MINIMAL.replace("n_heads = 4", "n_heads = 5"), "5 heads"),
        ("steps = 0\n" + MINIMAL, "steps is 0"),
        ('steps = "many"\n' + MINIMAL, "steps is 'many'"),
        (MINIMAL + "[entropy]\npenalty = -1\n", "penalty is -1"),
        (MINIMAL + "[entropy]\npenalty = 1\nfalls_from = 1\n", "falls_from is 1"),
        (MINIMAL + "[entropy]\nfalls_from = 0.5\n", "penalty"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_the_file(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"r.toml.*{message}"):
        load_recipe(path)


WRONG: dict[str, tuple[object, ...]] = {
    "task": ("translate", "next-token", "text-to-text"),
    "schedule": ("linear",),
    "precision": ("float16",),
    **dict.fromkeys(("batch_tokens", "evaluate_every", "evaluate_sentences"), (0,)),
    **{"warmup_steps": (-1,), "log_every": (True,), "save_every": (2.5,), "joined_examples": (-1,)},
    **dict.fromkeys(("new_tokenizer", "fresh_self_attention"), (1,)),
    "restart_at": (5_000, 20_000),
    "restart_dropout": (0.2, 1.0),
    **{"learning_rate": (0.0,), "gradient_clip": (-1.0,), "weight_decay": (-0.1,), "mixing_temperature": (0.5,)},
    **dict.fromkeys(("label_smoothing", "average_decay", "inner_dropout"), (1.0,)),
    "attention_dropout": (1.0, "much"),
    "teacher_weight": (1.5, "all"),
    "max_sequence_length": (65,),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_entry_is_named_with_its_value(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name}.* {re.escape(repr(value))}"):
        recipe(**{name: value})


CLASSES = {"class_names": ("a", "b")}


@pytest.mark.parametrize(
    ("task", "kind", "fields", "more", "word"),
    [
        ("translation", "encoder-decoder", {"task_prefixes": ("fill: ",)}, {}, "task_prefixes"),
        ("text-to-text", "encoder-decoder", {"task_prefixes": ("summarize: ",)}, {}, "summarize"),
        ("text-to-text", "encoder-decoder", {"task_prefixes": ("fill: ",)}, {}, "multi30k-en-de"),
        ("classification", "encoder-only", {}, {}, "class_names"),
        ("masked-token", "encoder-only", CLASSES, {}, "class_names"),
        ("masked-token", "encoder-only", {"n_segments": 2}, {}, "has no n_segments = 2"),
        ("masked-token-next-sentence", "encoder-only", {}, {}, "needs n_segments = 2"),
        ("classification", "encoder-only", CLASSES, {"entropy": Entropy(1.0)}, "entropy is .* a task that predicts"),
        ("translation", "encoder-decoder", {}, {"restart_at": 5_000, "schedule": "paper"},
         "a restart needs schedule cosine"),
    ],
)  # fmt: skip
def test_entries_that_do_not_fit_each_other(task: str, kind: str, fields: dict, more: dict, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        recipe(task=task, model=config(kind, max_length=64, **fields), **more)


# ---- the learning rate, at steps computed by hand -------------------------------------------------------------------

COSINE = {"schedule": "cosine", "learning_rate": 2e-3, "warmup_steps": 20, "steps": 100}
AT_ONCE = {"schedule": "cosine", "learning_rate": 1.0}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (COSINE, {1: 1e-4, 10: 1e-3, 20: 2e-3, 40: 1e-3 * (1 + 0.5**0.5), 60: 1e-3, 100: 0.0, 150: 0.0}),
        ({**COSINE, "restart_at": 60, "restart_learning_rate": 1e-3},
         {20: 2e-3, 40: 1e-3, 60: 0.0, 70: 0.5e-3 * (1 + 0.5**0.5), 80: 0.5e-3, 100: 0.0}),
        ({**AT_ONCE, "warmup_steps": 100, "steps": 100}, {50: 0.5, 100: 1.0}),  # it ends while it warms up
        ({**AT_ONCE, "warmup_steps": 1, "steps": 1}, {1: 1.0}),
    ],
    ids=["cosine", "restart", "only warm-up", "one step"],
)  # fmt: skip
def test_cosine(entries: dict[str, Any], expected: dict[int, float]) -> None:
    rates = {step: learning_rate(recipe(**entries), step) for step in expected}
    assert rates == pytest.approx(expected, abs=1e-12)


def test_the_papers_schedule() -> None:
    """§5.3 for a width of 16 and 20 warm-up steps: the peak is 16^−½ · 20^−½ = 0.0559."""
    settings = recipe(schedule="paper", learning_rate=1.0, warmup_steps=20)
    peak = 0.25 * 20**-0.5
    rates = {step: learning_rate(settings, step) for step in (1, 10, 20, 80)}
    assert rates == pytest.approx({1: 0.25 * 20**-1.5, 10: peak / 2, 20: peak, 80: peak / 2})
    assert learning_rate(replace(settings, learning_rate=3.0), 80) == pytest.approx(1.5 * peak)
