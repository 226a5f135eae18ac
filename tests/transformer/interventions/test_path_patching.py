"""Path patching equals its definition in single runs, one sender at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.foreign_checkpoints import FOREIGN
from tests.transformer.interventions.test_activation_patching import contrast_of, difference
from transformer.interventions.activation_patching import Contrast
from transformer.interventions.path_patching import INPUTS, path_patching, senders_of
from transformer.probes import Edit
from transformer.runs.head_places import Head, all_heads

KINDS = ("translator", "gpt", "bert", "sentiment")


def by_hand(both: Contrast, sender: Head, receiver: Head, inputs: tuple[str, ...]) -> float:
    """Run the whole model three times, as Wang et al. describe."""
    turn = both.most_changed_turn
    clean, corrupt = (difference(both, turn, read)[1] for read in (both.clean, both.corrupt))
    frozen = []
    for name in corrupt:
        if name.endswith((".context", "feed_forward.output")):
            value = corrupt[name].clone()
            if name == f"{sender.stack}.layers.{sender.layer}.{sender.kind}_attention.context":
                value[0, sender.head] = clean[name][0, sender.head]
            frozen.append(Edit(name, lambda _own, value=value: value))
    _, heard = difference(both, turn, both.corrupt, tuple(frozen))
    told = []
    for part in inputs:
        name = f"{receiver.stack}.layers.{receiver.layer}.{receiver.kind}_attention.{part}"

        def put(own, name=name):
            new = own.clone()
            new[0, receiver.head] = heard[name][0, receiver.head]
            return new

        told.append(Edit(name, put))
    patched, _ = difference(both, turn, both.corrupt, tuple(told))
    return (patched - turn.corrupt) / (turn.clean - turn.corrupt)


def receivers(checkpoint: transformer.Checkpoint) -> list[Head]:
    return [head for head in all_heads(checkpoint.config) if (head.layer, head.head) == (1, 1)]


def agrees(both: Contrast, inputs: tuple[str, ...]) -> None:
    for receiver in receivers(both.checkpoint):
        senders = senders_of(both, receiver)
        found = path_patching(both, both.most_changed_turn, receiver, inputs=inputs)
        assert found.shape == (len(senders),)
        wanted = [by_hand(both, sender, receiver, inputs) for sender in senders]
        np.testing.assert_allclose(found, wanted, atol=2e-4 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("inputs", [INPUTS, ("query",), ("value",)])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_what_three_runs_give(tiny_checkpoint: Callable, kind: str, inputs: tuple[str, ...]) -> None:
    agrees(contrast_of(tiny_checkpoint(kind)), inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hf-gpt2", "hf-t5", "hf-deberta", "hf-gemma2"])
def test_other_families(families_folder, name: str) -> None:
    assert name in FOREIGN
    agrees(contrast_of(transformer.load(families_folder / name)), INPUTS)


def test_who_can_be_heard(tiny_checkpoint: Callable) -> None:
    both = contrast_of(tiny_checkpoint("translator"))
    crossing = Head("decoder", "cross", 1, 0)
    heard = senders_of(both, crossing)
    assert Head("decoder", "self", 1, 1) in heard and Head("decoder", "cross", 1, 1) not in heard
    assert Head("encoder", "self", 1, 0) in heard and crossing not in heard
    assert senders_of(both, Head("encoder", "self", 0, 0)) == ()
    later = [Head("decoder", "cross", 1, 1), crossing]
    assert path_patching(both, both.most_changed_turn, crossing, later).tolist() == [0, 0], "bitwise nothing"
    from_encoder = [head for head in heard if head.stack == "encoder"]
    assert not path_patching(both, both.most_changed_turn, crossing, from_encoder, inputs=("query",)).any()
    assert path_patching(both, both.most_changed_turn, crossing, from_encoder, inputs=("value",)).any()
    with pytest.raises(ValueError, match="'score' is not an input of a head"):
        path_patching(both, both.most_changed_turn, crossing, inputs=("score",))
    with pytest.raises(ValueError, match="this model has no head"):
        senders_of(both, Head("decoder", "cross", 9, 0))
