"""The payload of the living picture: exact numbers, or weights in units of 1/65535 if there are many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from charts.canvas import living_picture_canvas as module
from charts.canvas.living_picture_canvas import living_picture_canvas
from charts.toolkit.payload_bytes import unpack
from transformer.predictions.living_picture_numbers import LivingPicture, living_picture_numbers

SENTENCE = "The old man told us a story."


@pytest.fixture(scope="module", params=["translator", "gpt", "bert", "sentiment"])
def picture(request: pytest.FixtureRequest, tiny_checkpoint: Callable) -> LivingPicture:
    trace = transformer.trace(tiny_checkpoint(request.param), SENTENCE)
    return living_picture_numbers(trace, inside=[(stack, 0) for stack in trace.stacks])


def test_every_number_arrives(picture: LivingPicture) -> None:
    metadata, arrays = unpack(living_picture_canvas(picture, begin={"stack": "encoder"}).packed())
    for stack, described in zip(picture.stacks, metadata["stacks"], strict=True):
        for name in ("stream", "update", "growth", "token", "before_activation", "after_activation"):
            assert np.array_equal(arrays[f"{stack.name}.{name}"], np.float32(getattr(stack, name)))
        assert np.array_equal(arrays[f"{stack.name}.units"], stack.units)
        assert [token["text"] for token in described["tokens"]] == list(stack.tokens.displays)
        assert described["steps"] == [{"layer": step.layer, "kind": step.kind} for step in stack.steps]
        for name in ("place", "final"):
            assert (f"{stack.name}.{name}" in arrays) == (getattr(stack, name) is not None)
    for attention, described in zip(picture.attentions, metadata["attentions"], strict=True):
        name = f"{attention.stack}.{attention.kind}"
        assert described["exact"] and np.array_equal(arrays[f"{name}.weights"], attention.weights)
        bits = np.unpackbits(arrays[f"{name}.allowed"], bitorder="little")[: attention.allowed.size]
        assert np.array_equal(bits.reshape(attention.allowed.shape), attention.allowed)
    for row, described, chances in zip(
        picture.written, metadata["written"], arrays["written.probabilities"], strict=True
    ):
        assert described == {"position": row.position, "names": list(row.names), "chosen": row.chosen}
        assert np.array_equal(chances[: len(row.names)], np.float32(row.probabilities))
    for row, logits, log_sum in zip(picture.written, arrays["written.logits"], arrays["written.log_sum"], strict=True):
        assert np.allclose(np.exp(logits[: len(row.names)] - log_sum), row.probabilities, rtol=1e-3)
    for layer in picture.inside:
        for name, values in layer.arrays.items():
            assert np.array_equal(arrays[f"inside.{layer.stack}.{layer.layer}.{name}"], np.float32(values))


def test_very_many_weights_are_rounded_and_said_to_be(picture: LivingPicture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EXACT", 3)
    metadata, arrays = unpack(living_picture_canvas(picture).packed())
    for attention, described in zip(picture.attentions, metadata["attentions"], strict=True):
        sent = arrays[f"{attention.stack}.{attention.kind}.weights"]
        assert sent.dtype == np.uint16 and not described["exact"]
        assert np.abs(sent / 65535 - attention.weights).max() <= 0.5 / 65535 + 1e-9


def test_a_page_of_its_own(picture: LivingPicture) -> None:
    figure = living_picture_canvas(picture)
    assert figure.metadata["title"] in figure.html()
