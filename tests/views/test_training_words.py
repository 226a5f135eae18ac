"""The sentences of the Training page about a run: its facts, its score, its learning rate."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import ROOT
from tests.ui.texts_of import TextsOf
from transformer.files.model_card import checkpoint_step
from transformer.training.recipe import load_recipe
from ui.words.texts import page_text
from views.training.training_sections import facts, rate_caption, score_caption


def test_the_facts_name_the_first_evaluation_and_what_the_run_started_from() -> None:
    history = pd.DataFrame({"step": [20, 400, 4200], "dev_loss": [math.nan, 1.05, 0.932], "target_tokens": [1, 2, 3],
                            "seconds": [1, 2, 120]})  # fmt: skip
    said = facts(TextsOf("training"), history, card="| began as | the checkpoint `en-fr-2017`, except W_Q |")
    assert "at step 400" in said and "**1.05** to **0.932**" in said and "2017" in said
    assert said.count("4,200") == 1
    from_random = facts(TextsOf("training"), history.iloc[:2], card="")
    assert "loss" not in from_random and "random" not in from_random


@pytest.mark.parametrize(
    "path", sorted((ROOT / "checkpoints").glob("*/history.csv")), ids=lambda path: path.parent.name
)
def test_the_caption_of_the_scores_is_true_of_every_included_checkpoint(path: Path) -> None:
    """It says that the checkpoint has the best score only where it does; en-fr was kept at another step."""
    history = pd.read_csv(path)
    kept = checkpoint_step(path.parent)
    said = score_caption(
        TextsOf("training"), history, kept=kept, recipe=load_recipe(ROOT / "configs" / f"{path.parent.name}.toml")
    )
    assert kept is not None
    scores = history.set_index("step")["dev_score"]
    assert ("which has the best value" in said) == (scores[kept] == scores.max())
    assert f"step {kept:,}" in said and ("first 300 sentences" in said) == (path.parent.name in ("en-fr", "en-fr-2017"))


def test_a_sudden_fall_of_the_learning_rate_is_named() -> None:
    text = page_text("training")
    said = rate_caption(TextsOf("training"), pd.read_csv(ROOT / "checkpoints" / "en-fr" / "history.csv"))
    assert said == f"{text['rate']} {text['rate_dropped'].format(before='3,300', after='3,320')}"
    assert (
        rate_caption(TextsOf("training"), pd.read_csv(ROOT / "checkpoints" / "gpt-en" / "history.csv")) == text["rate"]
    )
