from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from transformer.layers import positional
from transformer.positions import RotaryEncoding
from transformer.variants.partial_rotary import PartialRotaryEncoding, Rotary


def test_added_encoding_is_what_the_trace_recorded(tiny_checkpoint):
    for kind, stack in (("translator", "encoder"), ("gpt", "decoder")):
        checkpoint = tiny_checkpoint(kind)
        trace = transformer.trace(checkpoint, "The dog sleeps.")
        recorded = trace.values(f"{stack}.embedding.position")
        table = positional.added_encoding(checkpoint.model, stack, 50)
        assert len(table) == 50
        np.testing.assert_array_equal(table[: len(recorded)], recorded)
    assert positional.added_encoding(tiny_checkpoint("bert").model, "encoder", 50) is None


def test_the_table_ends_where_the_model_does(tiny_checkpoint):
    assert len(positional.added_encoding(tiny_checkpoint("translator").model, "encoder", 5000)) == 96


def test_similarity_is_a_cosine_of_the_distance_alone():
    similarity = positional.similarity(positional.sinusoidal_table(30, 64))
    np.testing.assert_allclose(np.diag(similarity), 1, atol=1e-6)
    np.testing.assert_allclose(similarity[0, :20], similarity[10, 10:30], atol=1e-5)
    assert (np.abs(similarity) <= 1).all()


def test_rotary_angles_are_those_of_the_model(tiny_checkpoint):
    config = tiny_checkpoint("bert").config
    rotary = RotaryEncoding(config)
    angles = positional.rotary_angles(config, 20)
    np.testing.assert_allclose(np.cos(angles), rotary.cosine[:20], atol=1e-6)
    np.testing.assert_allclose(np.sin(angles), rotary.sine[:20], atol=1e-6)


@pytest.mark.parametrize("n_turned", [16, 8])
def test_the_table_of_a_rotary_model_is_what_its_encoding_multiplies_by(n_turned):
    rotary = Rotary(n_turned, base=500.0)
    ones = torch.ones(1, 1, 12, 16)
    ones[..., n_turned // 2 :] = 0.0  # a pair (1, 0) is turned into (cos, sin)
    turned = PartialRotaryEncoding(rotary)(ones)[0, 0]
    np.testing.assert_allclose(positional.rotary_table(rotary, 12), turned[:, :n_turned], atol=1e-6)


def test_relative_bias_is_what_is_added_to_the_scores(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    trace = transformer.trace(checkpoint, "The dog sleeps under the table.")
    recorded = trace.values("encoder.position_bias.values")
    bias, distances = positional.relative_bias(checkpoint.model, "encoder", 5)
    assert distances.tolist() == list(range(-5, 6))
    for distance, column in zip(distances, bias.T, strict=True):
        query = 0 if distance >= 0 else -int(distance)
        np.testing.assert_array_equal(recorded[:, query, query + distance], column)
    with pytest.raises(ValueError, match="rotary"):
        positional.relative_bias(tiny_checkpoint("bert").model, "encoder", 5)


def test_buckets_are_exact_near_and_wide_far_away(tiny_checkpoint):
    buckets, distances = positional.relative_buckets(tiny_checkpoint("sentiment").config, 200, causal=False)
    near = np.abs(distances) < 8
    assert len(set(buckets[near])) == near.sum()
    assert buckets[0] == buckets[40] and buckets.max() < 32
    causal, distances = positional.relative_buckets(tiny_checkpoint("sentiment").config, 20, causal=True)
    assert distances[-1] == 0 and len(set(causal[-16:])) == 16


@pytest.mark.parametrize("distance", [-7, -2, 1, 30])
def test_a_shift_of_sinusoidal_positions_is_one_linear_map(distance):
    table = positional.sinusoidal_table(64, 32).astype(np.float64)
    before, after = (table[-distance:], table[:distance]) if distance < 0 else (table[:-distance], table[distance:])
    np.testing.assert_allclose(positional.shifted(before, distance), after, atol=2e-6)


def test_sinusoidal_table_is_the_formula():
    assert torch.equal(
        torch.from_numpy(positional.sinusoidal_table(5, 4)), transformer.positions.sinusoidal_encoding(5, 4)
    )
