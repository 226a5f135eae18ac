"""Attribution patching equals slopes measured by a small step, and approximates patching."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from tests.foreign_checkpoints import FOREIGN
from tests.transformer.interventions.test_activation_patching import CLEAN, contrast_of
from transformer.interventions.activation_patching import Contrast, Turn, head_places, logits_of, probe_of, token_places
from transformer.interventions.attribution_patching import estimated_importance, estimated_shares, strongest
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.probes import Edit, record

STEP = 1e-5


def doubled(checkpoint: transformer.Checkpoint) -> transformer.Checkpoint:
    """In float64, so that a small step exceeds rounding."""
    return replace(checkpoint, model=copy.deepcopy(checkpoint.model).double())


def difference(both: Contrast, turn: Turn, edits: tuple[Edit, ...] = ()) -> float:
    with torch.inference_mode(), record(edits):
        return float(turn.difference(logits_of(both, turn)[1]))


def towards(name: str, index: int, wanted: torch.Tensor) -> Edit:
    def step(own: torch.Tensor) -> torch.Tensor:
        changed = own.clone()
        changed[:, index] += STEP * (wanted[:, index] - own[:, index])
        return changed

    return Edit(name, step)


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_a_share_is_the_slope_towards_the_clean_run(kind: str, tiny_checkpoint: Callable) -> None:
    both = contrast_of(tiny_checkpoint(kind))
    both = replace(both, checkpoint=doubled(both.checkpoint))
    turn, stack = both.most_changed_turn, next(iter(both.clean))
    with torch.inference_mode(), record() as clean:
        logits_of(both, turn)
    for places in (token_places(both, turn, stack), head_places(both, stack)):
        found, before = estimated_shares(both, turn, places), difference(both, turn)
        for row, values in zip(places, found, strict=True):
            for place, share in zip(row, values, strict=True):
                name = probe_of(place)
                after = difference(both, turn, (towards(name, place.index, clean.tensors[name][:1]),))
                expected = (after - before) / STEP / (turn.clean - turn.corrupt)
                assert share == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_a_change_is_the_slope_towards_a_silent_head(kind: str, tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(doubled(tiny_checkpoint(kind)), CLEAN)
    question, model = prediction_rows(trace), trace.checkpoint.model
    ids = [torch.tensor([tokens.ids]) for tokens in (trace.source, trace.target) if tokens is not None]

    def number(edits: tuple[Edit, ...] = ()) -> float:
        with torch.inference_mode(), record(edits):
            logits = model(*ids)[0].numpy()
        return float(question.chosen(question.log_softmax(trace.checkpoint, logits)).sum())

    found = estimated_importance(trace)
    assert found.complete and all(np.isnan(one.kl) for one in found.measured)
    before = number()
    for (stack, kind_of, layer, head), change, *_ in found.measured:
        name = f"{stack}.layers.{layer}.{kind_of}_attention.context"
        after = number((towards(name, head, torch.zeros(1, model.config.heads_in(stack), 1, 1)),))
        assert change == pytest.approx((after - before) / STEP, rel=1e-3, abs=1e-5)
    best = strongest(found, 2)
    changes = {one.place: abs(one.change) for one in found.measured}
    assert min(changes[head] for head in best) >= max(changes[head] for head in found.heads if head not in best)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOREIGN)
def test_other_families_leave_no_gradient_behind(family: Callable, name: str) -> None:
    checkpoint = family(name)
    both = contrast_of(checkpoint)
    for stack in both.clean:
        shares = estimated_shares(both, both.turns[-1], token_places(both, both.turns[-1], stack))
        assert np.isfinite(shares).all() or both.turns[-1].clean == both.turns[-1].corrupt
    assert estimated_importance(transformer.trace(checkpoint, CLEAN)).complete
    assert all(parameter.grad is None for parameter in checkpoint.model.parameters())
