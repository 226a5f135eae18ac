"""Effects of positions on scores: formulas equal their tables, measurements equal a known bias."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from tests.shipped import shipped
from tests.transformer import tiny
from transformer.guests.rotary_positions import RotaryPositions, plain_rotary
from transformer.layers import positional_encodings
from transformer.layers.positional_encodings import (
    measured_position_scores,
    relative_bias,
    reordered_positions,
    without_positions,
)


def test_added_encoding_is_what_the_trace_recorded(tiny_checkpoint):
    for kind, stack in (("translator", "encoder"), ("gpt", "decoder")):
        checkpoint = tiny_checkpoint(kind)
        trace = transformer.trace(checkpoint, "The dog sleeps.")
        recorded = trace.values(f"{stack}.embedding.position")
        table = positional_encodings.added_encoding(checkpoint.model, stack, 50)
        assert len(table) == 50
        np.testing.assert_array_equal(table[: len(recorded)], recorded)
    assert positional_encodings.added_encoding(tiny_checkpoint("bert").model, "encoder", 50) is None


@pytest.mark.parametrize("n_turned", [16, 8])
def test_the_table_of_a_rotary_model_is_what_its_encoding_multiplies_by(n_turned):
    rotary = plain_rotary(n_turned, 500.0)
    ones = torch.ones(1, 1, 12, 16)
    ones[..., n_turned // 2 :] = 0.0  # a pair (1, 0) is rotated to (cos, sin)
    turned = RotaryPositions(rotary)(ones)[0, 0]
    np.testing.assert_allclose(positional_encodings.rotary_table(rotary, 12), turned[:, :n_turned], atol=1e-6)


def test_relative_bias_is_what_is_added_to_the_scores(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    trace = transformer.trace(checkpoint, "The dog sleeps under the table.")
    recorded = trace.values("encoder.position_bias.values")
    bias, distances = positional_encodings.relative_bias(checkpoint.model, "encoder", 5)
    assert distances.tolist() == list(range(-5, 6))
    for distance, column in zip(distances, bias.T, strict=True):
        query = 0 if distance >= 0 else -int(distance)
        np.testing.assert_array_equal(recorded[:, query, query + distance], column)


@pytest.mark.parametrize("distance", [-7, -2, 1, 30])
def test_a_shift_of_sinusoidal_positions_is_one_linear_map(distance):
    table = positional_encodings.sinusoidal_table(64, 32).astype(np.float64)
    assert positional_encodings.shift_deviation(table, distance) < 2e-6


def _encode(model, ids, edits=()):
    with torch.inference_mode(), transformer.record(edits):
        return model.encode(torch.tensor([ids]))[0].numpy()


@pytest.mark.parametrize("scheme", ["sinusoidal", "learned", "rotary", "relative"])
def test_other_positions_are_other_places_of_the_words_and_without_any_the_order_means_nothing(scheme):
    model, ids, order = tiny.random_model("encoder-only", positions=scheme), [7, 8, 9, 10, 11], [3, 0, 4, 1, 2]
    edited = _encode(model, ids, reordered_positions(model, "encoder", order))
    sentence = [0] * 5
    for token, place in zip(ids, order, strict=True):
        sentence[place] = token
    np.testing.assert_allclose(edited, _encode(model, sentence)[order], atol=1e-5)
    assert np.abs(edited - _encode(model, ids)).max() > 1e-3
    edits = without_positions(model, "encoder")
    mixed = _encode(model, [ids[place] for place in order], edits)
    np.testing.assert_allclose(mixed, _encode(model, ids, edits)[order], atol=1e-5)


def test_a_model_without_positions_has_nothing_to_edit():
    model = tiny.random_model("encoder-only", positions="none")
    assert without_positions(model, "encoder") == () and reordered_positions(model, "encoder", [1, 0]) == ()


IDS = (5, 9, 4, 17)


class Loaded:
    """Return only the parts of a checkpoint that the measurement needs."""

    def __init__(self, model):
        self.model, self.config = model, model.config


def writer() -> Loaded:
    return Loaded(tiny.random_model("decoder-only"))


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_of_a_relative_model_the_measurement_is_its_bias(stack):
    model = tiny.random_model(positions="relative")
    measured, distances = measured_position_scores(Loaded(model), IDS, stack=stack, n_positions=20)
    wanted, places = relative_bias(model, stack, 10)
    assert list(distances) == list(places)
    np.testing.assert_allclose(measured, wanted, atol=1e-5)


@pytest.mark.parametrize("kind", tiny.LAYERS)
@pytest.mark.parametrize("scheme", ["sinusoidal", "learned", "rotary", "none"])
def test_every_kind_of_model_can_be_measured(kind, scheme):
    model = tiny.random_model(kind, positions=scheme)
    stack = "decoder" if kind == "decoder-only" else "encoder"
    measured, distances = measured_position_scores(Loaded(model), IDS, stack=stack, n_positions=16)
    assert measured.shape == (2, len(distances)) == (2, 9 if stack == "decoder" else 17)
    assert (np.abs(measured).max() > 1e-3) == (scheme != "none")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: reordered_positions(model, "encoder", [0, 2]), r"\[0, 2\]"),
        (lambda model: _encode(model, [5], reordered_positions(model, "encoder", list(range(30)))), "reads only"),
        (lambda model: relative_bias(tiny.random_model("encoder-only", positions="rotary"), "encoder", 5), "rotary"),
        (lambda model: measured_position_scores(writer(), IDS, stack="encoder", n_positions=8), "no encoder"),
        (lambda model: measured_position_scores(writer(), IDS, stack="decoder", n_positions=25), "reads 2 to 24"),
    ],
)
def test_what_cannot_be_moved_or_measured_is_refused(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(tiny.random_model())


def test_only_the_sinusoidal_table_is_the_same_in_both_directions():
    """In the learned table of bert-en, the cosine from position 4 is 0.16 two back and 0.31 two ahead."""
    learned, formula = (
        positional_encodings.added_encoding(shipped(name).model, "encoder", 64) for name in ("bert-en", "en-fr-2017")
    )
    back, ahead = positional_encodings.cosines_around(learned, 4, 2)
    assert (round(back, 2), round(ahead, 2)) == (0.16, 0.31)
    assert positional_encodings.shift_deviation(learned, -2) > 0.1
    back, ahead = positional_encodings.cosines_around(formula, 4, 2)
    assert back == pytest.approx(ahead, abs=1e-6)
    for distance in (-2, 3):
        assert positional_encodings.shift_deviation(formula, distance) < 1e-5
