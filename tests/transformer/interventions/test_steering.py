"""Steering beside its controls: the numbers are those of single experiments, and c = 0 does nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from transformer.interventions.experiment import experiment
from transformer.interventions.steering import steering_effect
from transformer.runs.directions import ordinary_positions
from transformer.runs.edit_specs import edits_from

SENTENCE = "The cat sat on the mat."
KINDS = {"translator": "encoder", "gpt": "decoder", "bert": "encoder", "sentiment": "encoder"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_that_of_one_experiment(tiny_checkpoint: Callable, kind: str) -> None:
    checkpoint, stack = tiny_checkpoint(kind), KINDS[kind]
    trace = transformer.trace(checkpoint, SENTENCE)
    source = f"prompts {SENTENCE} ||| The dogs sleep."
    done: list[tuple[int, int]] = []
    found = steering_effect(
        trace, f"steer:{stack}.1.residual=6 {source}", seeds=(4, 5), progress=lambda *at: done.append(at)
    )
    assert done == [(1, 3), (2, 3), (3, 3)]
    specs = [f"steer:{stack}.1.residual=6 {like}{source}" for like in ("", "random 4 like ", "random 5 like ")]
    for one, spec in zip((found.steered, *found.controls), specs, strict=True):
        alone = experiment(trace, edits_from(checkpoint, [spec]))
        assert (one.change, one.kl, one.text) == (alone.change, alone.mean_kl, alone.answer_after.text)
        assert one.kl > 0 and one.gain > 0
    name = f"{stack}.layers.1.residual.in"
    moved = experiment(trace, edits_from(checkpoint, specs[:1])).changed.values(name) - trace.values(name)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=-1), found.length, rtol=1e-4)
    lengths = np.linalg.norm(trace.values(name)[ordinary_positions(trace, stack)], axis=-1)
    assert found.stream == pytest.approx(float(lengths.mean()), rel=1e-5)
    assert [row["seed"] for row in found.records()] == [None, 4, 5]


def test_nothing_added_changes_nothing(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    found = steering_effect(trace, f"steer:decoder.0.residual=0 head 1.self.0 of {SENTENCE}", seeds=(1,))
    for one in (found.steered, *found.controls):
        assert (one.change, one.kl, one.gain, one.text) == (0, 0, 0, found.before)
    assert (found.length, found.changed, found.weaker) == (0, 0, 0)


def test_another_edit_is_refused(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    with pytest.raises(ValueError, match="zero:decoder.0.self.1 does not steer"):
        steering_effect(trace, "zero:decoder.0.self.1")


def test_the_examples_of_the_app_do_what_their_prompts_suggest() -> None:
    """The prompts with which the page opens: a claim of the docstring and of the docs."""
    bert = transformer.load(ROOT / "checkpoints" / "bert-en")
    trace = transformer.trace(bert, "I drank a cup of [MASK].")
    found = steering_effect(trace, "steer:encoder.2.residual=2 prompts a cold beer ||| a hot tea")
    assert (found.before, found.steered.text) == ("I drank a cup of coffee.", "I drank a cup of beer.")
    assert found.weaker == len(found.controls) == 8 and found.changed == 1
    translator = transformer.load(ROOT / "checkpoints" / "en-fr")
    trace = transformer.trace(translator, "The cat is on the mat.")
    spec = "steer:encoder.1.residual=2 prompts The dogs are there. ||| The dog is there."
    found = steering_effect(trace, spec, seeds=(1, 2, 3))
    assert found.steered.text.startswith("Les chats") and found.weaker == 3
