"""The pages Training and Checkpoint show the contents of the checkpoint's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pages.conftest import is_fine, said
from transformer.training.run_state import write_history

KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
ROWS = [
    {"step": 50, "epoch": 0, "target_tokens": 900, "seconds": 61.0, "learning_rate": 1e-3, "train_loss": 5.5},
    {"step": 100, "epoch": 0, "target_tokens": 1800, "seconds": 120.0, "learning_rate": 5e-4, "train_loss": 4.5,
     "gradient_norm": 1.0, "dev_loss": 4.75, "dev_perplexity": 115.6, "dev_score": 12.5},
]  # fmt: skip


@pytest.fixture
def history(checkpoints_folder: Path, request) -> Iterator[Path]:
    path = checkpoints_folder / request.param / "history.csv"
    write_history(path, ROWS)
    yield path
    path.unlink()


@pytest.mark.parametrize("history", KINDS, indirect=True)
def test_training_draws_the_curves_of_history_csv(open_app: Callable, history: Path) -> None:
    app = open_app("training", checkpoint=history.parent.name)
    is_fine(app)
    counted = "labelled examples" if history.parent.name == "tiny-sentiment" else "predicted tokens"
    assert "100 steps" in said(app) and f"1,800 {counted}" in said(app) and "2 minutes" in said(app)
    assert said(app).count("took **100 steps**") == 1
    assert app.segmented_control(key="training section").options[0] == "Curves"
    assert app.dataframe[0].value["train_loss"].tolist() == [5.5, 4.5]
    assert len(app.get("vega_lite_chart")) == 3


def test_training_shows_how_many_heads_had_a_role_where_the_run_counted_them(
    open_app: Callable, checkpoints_folder: Path
) -> None:
    path = checkpoints_folder / "tiny-bert" / "history.csv"
    write_history(path, [ROWS[0], {**ROWS[1], "heads_with_job": 7}])
    try:
        app = open_app("training", checkpoint="tiny-bert")
        is_fine(app)
        assert app.dataframe[0].value["heads with a role"].tolist()[1] == 7
    finally:
        path.unlink()


def test_training_says_when_there_are_no_curves(open_app: Callable) -> None:
    app = open_app("training", checkpoint="tiny-gpt")
    is_fine(app)
    assert "has no history.csv" in app.info[0].value


@pytest.mark.parametrize("checkpoint", KINDS)
def test_checkpoint_lists_every_parameter(open_app: Callable, tiny_checkpoint: Callable, checkpoint: str) -> None:
    model = tiny_checkpoint(checkpoint).model
    app = open_app("checkpoint", checkpoint=checkpoint)
    is_fine(app)
    assert app.metric[0].value == f"{model.n_parameters:,}"
    assert app.dataframe[0].value["numbers"].sum() == model.n_parameters
    assert "Random weights, made for the tests" in said(app)
