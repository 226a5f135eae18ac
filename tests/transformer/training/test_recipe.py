"""A recipe is valid when it is read, or the error names the file and the entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.transformer.test_pictures import config as pictures
from tests.transformer.tiny import config
from transformer.training.recipe import KIND_OF_TASK, Entropy, Recipe, load_recipe

REPOSITORY = Path(__file__).resolve().parents[3]
MINIMAL = 'name = "n"\ntask = "translation"\ncorpus = "tatoeba-en-fr"\n[model]\nd_model = 32\nn_heads = 4\n'


def recipe(**values: Any) -> Recipe:
    basis = {"name": "n", "task": "translation", "corpus": "tatoeba-en-fr", "model": config(max_length=64)}
    return Recipe(**{**basis, **values})


@pytest.mark.parametrize("path", sorted((REPOSITORY / "configs").glob("*.toml")), ids=lambda path: path.stem)
def test_the_shipped_recipes_are_right_and_named_after_their_file(path: Path) -> None:
    shipped = load_recipe(path)
    assert shipped.name == path.stem
    assert max(shipped.snapshots, default=0) <= shipped.steps
    assert shipped.warmup_steps < shipped.steps


def test_a_recipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text("snapshots = [0, 5]\nsteps = 7\n" + MINIMAL)
    loaded = load_recipe(path)
    assert (loaded.name, loaded.steps, loaded.snapshots) == ("n", 7, (0, 5))
    assert (loaded.model.d_model, loaded.model.n_heads) == (32, 4)
    assert hash(loaded)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("= 3", "r.toml is not valid TOML"),
        ("step = 3\n" + MINIMAL, r"r.toml has unknown entries \['step'\]; known are .*steps"),
        (MINIMAL + "layers = 3\n", r"r.toml has unknown entries \['layers'\] in \[model\]"),
        ('name = "n"\ntask = "translation"\n', r"r.toml lacks \['corpus', 'model'\]"),
        (MINIMAL.replace("n_heads = 4", "n_heads = 5"), "r.toml: d_model is 32, which is not divisible by 5 heads"),
        ("steps = 0\n" + MINIMAL, "r.toml: steps is 0; it must be an integer ≥ 1"),
        ('steps = "many"\n' + MINIMAL, "r.toml: steps is 'many'"),
        ('learning_rate = "high"\n' + MINIMAL, "r.toml: "),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_the_file(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        load_recipe(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no recipe .*nothing.toml; the shipped ones are in configs/"):
        load_recipe(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": "translate"}, "task is 'translate'; choose one of translation, next-token"),
        ({"schedule": "linear"}, "schedule is 'linear'; choose one of paper, cosine"),
        ({"precision": "float16"}, "precision is 'float16'; choose one of float32, bfloat16"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
        ({"joined_examples": -1}, "joined_examples is -1; it must be an integer ≥ 0"),
        ({"new_tokenizer": 1}, "new_tokenizer is 1; it must be true or false"),
        ({"restart_at": 20_000, "restart_learning_rate": 1e-3}, "restart_at is 20000; a restart needs"),
        ({"restart_dropout": 0.2}, "restart_dropout is 0.2, but there is no restart_at"),
        ({"restart_dropout": 1.0}, "restart_dropout is 1.0; it must be at least 0 and below 1"),
        ({"restart_at": 5_000}, "restart_at is 5000; a restart needs"),
        ({"restart_at": 5_000, "restart_learning_rate": 1e-3, "schedule": "paper"}, "restart_at is 5000"),
        ({"warmup_steps": -1}, "warmup_steps is -1"),
        ({"evaluate_every": 0}, "evaluate_every is 0"),
        ({"evaluate_sentences": 0}, "evaluate_sentences is 0"),
        ({"log_every": True}, "log_every is True"),
        ({"save_every": 2.5}, "save_every is 2.5"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be greater than 0"),
        ({"gradient_clip": -1.0}, "gradient_clip is -1.0"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0"),
        ({"average_decay": 1.0}, "average_decay is 1.0"),
        ({"inner_dropout": 1.0}, "inner_dropout is 1.0"),
        ({"attention_dropout": 1.0}, "attention_dropout is 1.0; it must be at least 0 and below 1"),
        ({"attention_dropout": "much"}, "attention_dropout is 'much'; it must be a number"),
        ({"teacher_weight": 1.5}, "teacher_weight is 1.5; it must be from 0 to 1"),
        ({"teacher_weight": "all"}, "teacher_weight is 'all'; it must be a number"),
        ({"fresh_self_attention": 1}, "fresh_self_attention is 1; it must be true or false"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1"),
        ({"max_sequence_length": 65}, "max_sequence_length is 65, but the model reads 64 tokens"),
        ({"mixing_temperature": 0.5}, "mixing_temperature is 0.5; it must be at least 1"),
        ({"task": "text-to-text"}, r"'text-to-text' does not fit task_prefixes \[\]; text-to-text needs some of"),
        ({"model": config(max_length=64, task_prefixes=("fill: ",))}, r"'translation' does not fit task_prefixes"),
        (
            {"task": "text-to-text", "model": config(max_length=64, task_prefixes=("summarize: ",))},
            r"does not fit task_prefixes \['summarize: '\]",
        ),
        (
            {"task": "text-to-text", "model": config(max_length=64, task_prefixes=("fill: ",))},
            r"corpus is 'tatoeba-en-fr'; these tasks are made from multi30k-en-de \+ tatoeba-en-fr",
        ),
        ({"task": "next-token"}, "'next-token' needs a model of kind 'decoder-only', not 'encoder-decoder'"),
        (
            {"task": "classification", "model": config("encoder-only", max_length=64)},
            r"'classification' needs class_names; they are \(\)",
        ),
        (
            {"task": "masked-token", "model": config("encoder-only", max_length=64, n_segments=2)},
            "task is 'masked-token' and n_segments 2; 'masked-token-next-sentence' and n_segments = 2 belong together",
        ),
        (
            {"task": "masked-token-next-sentence", "model": config("encoder-only", max_length=64)},
            "task is 'masked-token-next-sentence' and n_segments 0",
        ),
        (
            {"task": "masked-token", "model": config("encoder-only", max_length=64, class_names=("a", "b"))},
            r"'masked-token' has no class_names; they are \('a', 'b'\)",
        ),
    ],
)
def test_a_wrong_entry_is_named_with_its_value(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recipe(**values)


@pytest.mark.parametrize(("task", "kind"), KIND_OF_TASK.items())
def test_every_task_has_its_kind_of_model(task: str, kind: str) -> None:
    names = ("a", "b") if task == "classification" else ()
    prefixes = ("translate English to French: ",) if task == "text-to-text" else ()
    n_segments = 2 if task == "masked-token-next-sentence" else 0
    model = config(kind, max_length=64, class_names=names, task_prefixes=prefixes, n_segments=n_segments)
    if task == "picture-classification":
        with pytest.raises(ValueError, match="'picture-classification' and patch_size belong together"):
            recipe(task="classification", model=pictures())
        assert recipe(task=task, model=pictures(), max_sequence_length=17).task == task
    else:
        assert recipe(task=task, model=model).task == task


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[entropy]\npenalty = -1\n", r"\[entropy\] penalty is -1; it must be a number ≥ 0"),
        ("[entropy]\npenalty = 1\nfalls_from = 1\n", r"\[entropy\] falls_from is 1; it must be at least 0 and below 1"),
        ("[entropy]\nfalls_from = 0.5\n", "r.toml: .*penalty"),
    ],
)
def test_a_wrong_entropy_table_is_named(table: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(MINIMAL + table)
    with pytest.raises(ValueError, match=message):
        load_recipe(path)


def test_entropy_has_a_price_wherever_tokens_are_foretold() -> None:
    model = config("decoder-only", max_length=64)
    assert recipe(task="next-token", model=model, entropy=Entropy(1.0)).entropy.falls_from == 0.5
    model = config("encoder-only", max_length=64, class_names=("a", "b"))
    with pytest.raises(ValueError, match=r"\[entropy\] needs a task that predicts tokens, not 'classification'"):
        recipe(task="classification", model=model, entropy=Entropy(1.0))
