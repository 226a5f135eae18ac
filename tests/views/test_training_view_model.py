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
from transformer.heads.head_roles import RESTING, HeadRole
from transformer.heads.role_measures import UNCLEAR
from transformer.heads.roles_through_training import Moment, changed_most, development, map_change, moment_of
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.text.tokens import Token, TokenSequence
from transformer.training.recipe import load_recipe
from ui.words.texts import page_text
from views.heads.heads_view_model import heads_view_model
from views.training.curves import facts, rate_caption, score_caption
from views.training.training_view_model import mean_probability, telling_row, training_view_model


@pytest.fixture(scope="module")
def moments() -> tuple[Moment, ...]:
    return development(transformer.load(ROOT / "checkpoints" / "en-fr-sharp"), "The cat sat on the mat.")


def test_it_opens_on_the_head_with_a_role_that_changes_most_and_on_another_output(moments) -> None:
    shown = training_view_model(moments)
    assert shown.most_changed == changed_most(moments)
    assert (
        shown.most_changed[0] == Head("encoder", "self", 2, 3) and shown.late.role(shown.most_changed[0]).role == "sink"
    )
    taught = [role.place for role in shown.late.roles if role.role not in (*UNCLEAR, *RESTING)]
    changes = []
    for place in taught:
        before, after = (moment.view(place.stack, place.layer, place.kind) for moment in (shown.early, shown.late))
        changes.append(map_change(before, after)[place.head])
    assert shown.location == taught[int(np.argmax(changes))]
    assert shown.early.text != shown.late.text and shown.gain(None) is not None
    assert mean_probability(shown.late) > 2 * mean_probability(shown.early)


def test_it_counts_the_heads_with_a_role_as_the_heads_page_does() -> None:
    """Heads at rest are counted apart: gpt-en has more of them here than heads with a role."""
    checkpoint, sentence = transformer.load(ROOT / "checkpoints" / "gpt-en"), "My dog is big and my cat is small."
    last = moment_of(checkpoint, None, trace := transformer.trace(checkpoint, sentence))
    heads = heads_view_model(trace, Head("decoder", "self", 0, 0)).heads
    assert (last.clear_roles, last.at_rest) == (len(heads.with_role), len(heads.at_rest))
    assert last.at_rest > last.clear_roles > 0


def view_of(weights: list[list[float]], words: tuple[str, ...] = ("a", "b", ".")) -> AttentionView:
    tokens = TokenSequence(tuple(Token(index, index, word, word) for index, word in enumerate(words)))
    values = np.array([weights], dtype=np.float32)
    return AttentionView("x", "encoder", 0, "self", values, np.ones(values.shape[1:], bool), values, tokens, tokens)


def moment_with(view: AttentionView, *, predicted: tuple[tuple[str, float], ...] = ()) -> Moment:
    role = HeadRole("encoder", "self", 0, 0, "none", {})
    return Moment(None, "", math.nan, 0, 0.0, (view,), (role,), predicted=predicted)


def test_the_row_that_it_names_is_of_a_word_that_gained_most_for_a_word() -> None:
    early = view_of([[1, 0, 0], [0.2, 0.8, 0], [0, 0, 1]])
    late = view_of([[0, 0, 1], [0.7, 0.3, 0], [1, 0, 0]])
    gain = training_view_model([moment_with(early), moment_with(late)]).gain(None)
    assert gain is not None and (gain.query, gain.key) == ("b", "a"), "not the full stop, whose row changes more"
    assert (gain.before, gain.after) == pytest.approx((0.2, 0.7))
    assert training_view_model([moment_with(early)] * 2).gain(None) is None


def test_the_row_of_a_typed_text_is_one_that_was_learned() -> None:
    view, displays = view_of([[1.0] * 3] * 3), ("·pie", "akes", "·Sunday", ".")
    early = moment_with(view, predicted=(("·x", 0.9), ("x", 0.1), ("·x", 0.1), ("·x", 0.1)))
    late = moment_with(view, predicted=(("·pie", 0.4), ("akes", 0.9), ("·day", 0.8), (".", 1.0)))
    assert telling_row(training_view_model([early, late]), displays) == 0, "a whole word, and right"
    assert telling_row(training_view_model([early, early]), displays) is None


def test_the_run_itself_is_without_random_weights(moments) -> None:
    random = replace(moments[0], step=None, has_random_weights=True)
    shown = training_view_model((random, *moments), Head("decoder", "cross", 1, 0))
    assert shown.early is random and shown.run.moments == moments
    assert shown.run.location == shown.location


def test_distances_are_to_the_final_map(moments) -> None:
    location = Head("decoder", "cross", 1, 0)
    shown = training_view_model(moments, location)
    expected = [map_change(view, shown.views[-1])[0] for view in shown.views]
    np.testing.assert_allclose(shown.distances, expected)
    assert shown.distances[-1] == 0 < shown.distances[0]
    assert [role.place for role in shown.roles] == [location] * len(moments)


def test_a_model_that_is_asked_nothing_has_no_probability() -> None:
    assert math.isnan(mean_probability(Moment(0, "", math.nan, 0, 0.0, (), ())))


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
