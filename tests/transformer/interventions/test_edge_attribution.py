"""Estimated edges equal the slopes of path patching, and rank the edges as it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from tests.conftest import ROOT
from tests.transformer.interventions.test_activation_patching import contrast_of
from tests.transformer.interventions.test_attribution_patching import STEP, difference, doubled, towards
from tests.transformer.interventions.test_path_patching import receivers
from transformer.attribution.attention_trust import spearman
from transformer.interventions.activation_patching import Contrast, contrast, logits_at
from transformer.interventions.edge_attribution import estimated_edges
from transformer.interventions.path_patching import INPUTS, is_frozen, path_patching, senders_of
from transformer.probes import Edit, record
from transformer.runs.head_places import Head


def slope_by_hand(both: Contrast, sender: Head, receiver: Head, inputs: tuple[str, ...]) -> float:
    """Path patching of a small step of the sender's context towards the clean run."""
    turn = both.first_turn
    with torch.inference_mode():
        with record() as clean:
            logits_at(both, turn, both.clean, 1)
        with record() as corrupt:
            logits_at(both, turn, both.corrupt, 1)
        held = [Edit(name, lambda _own, kept=kept: kept) for name, kept in corrupt.tensors.items() if is_frozen(name)]
        name = f"{sender.stack}.layers.{sender.layer}.{sender.kind}_attention.context"
        with record([*held, towards(name, sender.head, clean.tensors[name])]) as received:
            logits_at(both, turn, both.corrupt, 1)

    def hear(name: str) -> Edit:
        def put(own: torch.Tensor) -> torch.Tensor:
            new = own.clone()
            new[:, receiver.head] = received.tensors[name][:, receiver.head]
            return new

        return Edit(name, put)

    at = f"{receiver.stack}.layers.{receiver.layer}.{receiver.kind}_attention"
    after = difference(both, turn, tuple(hear(f"{at}.{part}") for part in inputs))
    return (after - difference(both, turn)) / STEP / (turn.clean - turn.corrupt)


@pytest.mark.parametrize("inputs", [INPUTS, ("key",)])
@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_an_estimate_is_the_slope_of_path_patching(tiny_checkpoint: Callable, kind: str, inputs: tuple) -> None:
    both = contrast_of(tiny_checkpoint(kind))
    both = replace(both, checkpoint=doubled(both.checkpoint))
    for receiver in receivers(both.checkpoint):
        found = estimated_edges(both, both.first_turn, receiver, inputs=inputs)
        expected = [slope_by_hand(both, sender, receiver, inputs) for sender in senders_of(both, receiver)]
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_edges_that_cannot_be_have_no_effect(tiny_checkpoint: Callable) -> None:
    both = contrast_of(tiny_checkpoint("translator"))
    crossing = Head("decoder", "cross", 1, 0)
    later = [Head("decoder", "cross", 1, 1), crossing]
    assert estimated_edges(both, both.first_turn, crossing, later).tolist() == [0, 0]
    assert estimated_edges(both, both.first_turn, Head("encoder", "self", 0, 0)).shape == (0,)
    with pytest.raises(ValueError, match="'score' is not an input of a head"):
        estimated_edges(both, both.first_turn, crossing, inputs=("score",))


@pytest.mark.parametrize(
    ("name", "clean", "corrupted", "receiver"),
    [
        ("en-fr", "The cat sat on the mat.", "The dog sat on the mat.", Head("decoder", "cross", 2, 0)),
        ("gpt-en", "Tom and Mary went to the shop. Tom gave", "Tom and Mary went to the shop. Mary gave", None),
    ],
)
def test_it_ranks_the_edges_of_our_models_as_path_patching_does(
    name: str, clean: str, corrupted: str, receiver: Head | None
) -> None:
    checkpoint = transformer.load(ROOT / "checkpoints" / name)
    both = contrast(transformer.trace(checkpoint, clean), corrupted)
    receiver = receiver or Head("decoder", "self", checkpoint.config.n_decoder_layers - 1, 0)
    measured = path_patching(both, both.first_turn, receiver)
    assert spearman(estimated_edges(both, both.first_turn, receiver), measured) > 0.7
