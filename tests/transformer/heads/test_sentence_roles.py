"""Induction in one sentence: what followed the last time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import transformer
from transformer.heads.induction import followers
from transformer.heads.places import LEAST_SHARE
from transformer.heads.sentence_roles import head_roles, sentence_roles

CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"
TWICE = "horse milk Paris Friday Mary. horse milk Paris Friday"


def view_of(name: str, sentence: str, layer: int, stack: str = "decoder"):
    return transformer.trace(transformer.load(CHECKPOINTS / name), sentence).attention(stack, layer, "self")


def test_a_list_said_twice_shows_induction_and_the_share_is_what_followed_the_last_time() -> None:
    view = view_of("gpt-en", TWICE, layer=2)
    ids = view.key.ids
    for role in sentence_roles(view):
        shares = []
        for row, token in enumerate(view.query):
            behind = [key for key in range(1, row + 1) if ids[key - 1] == ids[row]]
            if behind and not token.special:
                shares.append(sum(view.weights[role.head, row, key] for key in behind))
        assert role.scores["induction"] == pytest.approx(np.mean(shares), abs=1e-6)
        assert (role.role == "induction") == (role.score >= LEAST_SHARE)
    assert sentence_roles(view)[4].role == "induction"  # the head on which this model opens


def test_a_head_that_does_something_else_more_keeps_its_role() -> None:
    view = view_of("gpt-en", TWICE, layer=1)
    for plain, found in zip(head_roles(view), sentence_roles(view), strict=True):
        assert found.role == plain.role
        assert found.scores["induction"] < LEAST_SHARE


@pytest.mark.parametrize(
    ("followed", "elsewhere", "role", "awake"),
    [(0.16, 0.04, "induction", 0.8), (0.06, 0.14, "sink", 0.3), (0.09, 0.01, "sink", 0.9), (0.12, 0.3, "sink", 2 / 7)],
)
def test_a_head_at_rest_that_wakes_up_for_what_followed_is_an_induction_head(followed, elsewhere, role, awake) -> None:
    view = view_of("gpt-en", TWICE, layer=2)
    behind = followers(view)
    weights = np.zeros_like(view.weights[:1])
    weights[0, :, 0] = 1  # at rest on <s>
    for row in np.flatnonzero(behind.any(axis=1)):
        weights[0, row, behind[row].argmax()] = followed
        weights[0, row, row] = elsewhere
        weights[0, row, 0] = 1 - followed - elsewhere
    (found,) = sentence_roles(replace(view, weights=weights, scores=view.scores[:1]))
    assert (found.role, found.scores["awake"]) == (role, pytest.approx(awake, abs=1e-4))
    assert found.scores["sink"] >= LEAST_SHARE  # most of it rests all the same


@pytest.mark.parametrize(
    ("name", "sentence", "stack"),
    [("gpt-en", "I want to", "decoder"), ("bert-en", "the cat saw the cat and the ___ cat.", "encoder")],
)
def test_nothing_is_said_without_repetition_nor_of_a_model_that_reads_both_sides(name, sentence, stack) -> None:
    view = view_of(name, sentence, layer=0, stack=stack)
    assert all("induction" not in role.scores for role in sentence_roles(view))
