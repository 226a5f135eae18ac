"""The view model of the Training page: each number equals that of the moments."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import transformer
from tests.conftest import ROOT
from transformer.files.model_card import checkpoint_step
from transformer.heads.sentence_through_training import Moment, changed_most, development, map_change
from transformer.runs.head_places import Head
from transformer.training.recipe import load_recipe
from ui.words.texts import page_text
from views.training.curves import facts, rate_caption, score_caption
from views.training.training_view_model import mean_probability, training_view_model


@pytest.fixture(scope="module")
def moments() -> tuple[Moment, ...]:
    return development(transformer.load(ROOT / "checkpoints" / "en-fr-sharp"), "The cat sat on the mat.")


def test_it_opens_on_the_head_that_changes_most_and_on_another_output(moments) -> None:
    shown = training_view_model(moments)
    assert shown.most_changed == changed_most(moments) == (shown.location, shown.most_changed[1])
    assert shown.location == Head("encoder", "self", 2, 3)
    assert shown.early.text != shown.late.text
    assert mean_probability(shown.late) > 2 * mean_probability(shown.early)


def test_the_run_itself_is_without_random_weights(moments) -> None:
    random = replace(moments[0], step=None, has_random_weights=True)
    shown = training_view_model((random, *moments), Head("decoder", "cross", 1, 0))
    assert shown.early is random and shown.run.moments == moments
    assert shown.run.location == shown.location
    only = training_view_model((random, moments[-1]), shown.location)
    assert only.run is only, "without snapshots, random weights are all there is to compare with"


def test_distances_are_to_the_final_map(moments) -> None:
    location = Head("decoder", "cross", 1, 0)
    shown = training_view_model(moments, location)
    expected = [map_change(view, shown.views[-1])[0] for view in shown.views]
    np.testing.assert_allclose(shown.distances, expected)
    assert shown.distances[-1] == 0 < shown.distances[0]


def test_a_model_that_is_asked_nothing_has_no_probability() -> None:
    assert math.isnan(mean_probability(Moment(0, "", math.nan, 0, 0.0, ())))


def test_the_facts_name_the_first_evaluation_and_what_the_run_started_from() -> None:
    history = pd.DataFrame({"step": [20, 400, 4200], "dev_loss": [math.nan, 1.05, 0.932], "target_tokens": [1, 2, 3],
                            "seconds": [1, 2, 120]})  # fmt: skip
    said = facts(history, page_text("training"), card="| began as | the checkpoint `en-fr-2017`, except W_Q |")
    assert "at step 400" in said and "**1.05** to **0.932**" in said and "2017" in said
    assert said.count("4,200") == 1
    from_random = facts(history.iloc[:2], page_text("training"), card="")
    assert "loss" not in from_random and "random" not in from_random


@pytest.mark.parametrize(
    "path", sorted((ROOT / "checkpoints").glob("*/history.csv")), ids=lambda path: path.parent.name
)
def test_the_caption_of_the_scores_is_true_of_every_included_checkpoint(path: Path) -> None:
    """It says that the checkpoint has the best score only where it does; en-fr was kept at another step."""
    history, text = pd.read_csv(path), page_text("training")
    kept = checkpoint_step(path.parent)
    said = score_caption(history, text, kept=kept, recipe=load_recipe(ROOT / "configs" / f"{path.parent.name}.toml"))
    assert kept is not None
    scores = history.set_index("step")["dev_score"]
    assert ("which has the best value" in said) == (scores[kept] == scores.max())
    assert f"step {kept:,}" in said and ("first 300 sentences" in said) == (path.parent.name in ("en-fr", "en-fr-2017"))


def test_a_sudden_fall_of_the_learning_rate_is_named() -> None:
    text = page_text("training")
    said = rate_caption(pd.read_csv(ROOT / "checkpoints" / "en-fr" / "history.csv"), text)
    assert said == f"{text['rate']} {text['rate_dropped'].format(before='3,300', after='3,320')}"
    assert rate_caption(pd.read_csv(ROOT / "checkpoints" / "gpt-en" / "history.csv"), text) == text["rate"]
