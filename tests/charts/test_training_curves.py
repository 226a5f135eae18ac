"""Training curves show the numbers of history.csv, and leave out missing values."""

from __future__ import annotations

import pandas as pd
import pytest

from charts.figures.training_curves import (
    DEV,
    TRAIN,
    loss_curves,
    rate_curve,
    repeated_loss_curve,
    score_curve,
)

HISTORY = pd.DataFrame(
    {
        "step": [50, 100],
        "learning_rate": [1e-3, 5e-4],
        "train_loss": [5.5, 4.5],
        "dev_loss": [None, 4.75],
        "dev_score": [None, 12.5],
    }
)


def drawn(figure) -> list[tuple]:
    values = figure.data  # both layers share the data
    columns = [column for column in ("step", "value", "curve") if column in values]
    return list(values[columns].itertuples(index=False, name=None))


def test_losses_are_two_curves_with_the_dev_loss_only_where_it_was_measured():
    assert drawn(loss_curves(HISTORY)) == [(50, 5.5, TRAIN), (100, 4.5, TRAIN), (100, 4.75, DEV)]


def test_score_and_rate():
    score = score_curve(HISTORY, score="BLEU")
    assert drawn(score) == [(100, 12.5)]
    assert score.to_dict()["layer"][0]["encoding"]["y"]["title"] == "BLEU"
    assert drawn(rate_curve(HISTORY)) == [(50, 1e-3), (100, 5e-4)]


def test_nothing_is_cut_or_stands_on_a_curve():
    """A long title wraps, the legend is above, and step 0 is not 0k."""
    score = score_curve(HISTORY, score="mean of the tasks' scores on dev").to_dict()["layer"][0]["encoding"]
    assert score["y"]["title"] == ["mean of the tasks'", "scores on dev"]
    assert "'0'" in score["x"]["axis"]["labelExpr"]
    assert loss_curves(HISTORY).to_dict()["layer"][0]["encoding"]["color"]["legend"]["orient"] == "top"


def test_the_curves_of_a_run_have_the_same_steps_at_the_same_place():
    encodings = [
        curve.to_dict()["layer"][0]["encoding"]
        for curve in (loss_curves(HISTORY), score_curve(HISTORY, score="BLEU"), rate_curve(HISTORY))
    ]
    assert all(one["x"]["scale"] == {"domain": [0, 100], "nice": False} for one in encodings)
    assert len({one["y"]["axis"]["minExtent"] for one in encodings}) == 1


def test_the_loss_of_repeated_tokens_is_drawn_at_its_steps():
    losses = repeated_loss_curve(pd.DataFrame({"step": [0, 100], "value": [8.3, 0.5]}))
    assert drawn(losses) == [(0, 8.3), (100, 0.5)]


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="dev_loss"):
        loss_curves(HISTORY.drop(columns="dev_loss"))
