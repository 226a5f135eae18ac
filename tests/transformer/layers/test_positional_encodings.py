"""Effects of positions on scores: formulas equal their tables, measurements equal a known bias."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
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


def test_the_table_ends_where_the_model_does(tiny_checkpoint):
    assert len(positional_encodings.added_encoding(tiny_checkpoint("translator").model, "encoder", 5000)) == 96


def test_similarity_is_a_cosine_of_the_distance_alone():
    similarity = positional_encodings.similarity(positional_encodings.sinusoidal_table(30, 64))
    np.testing.assert_allclose(np.diag(similarity), 1, atol=1e-6)
    np.testing.assert_allclose(similarity[0, :20], similarity[10, 10:30], atol=1e-5)
    assert (np.abs(similarity) <= 1).all()


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
    with pytest.raises(ValueError, match="rotary"):
        positional_encodings.relative_bias(tiny_checkpoint("bert").model, "encoder", 5)


@pytest.mark.parametrize("distance", [-7, -2, 1, 30])
def test_a_shift_of_sinusoidal_positions_is_one_linear_map(distance):
    table = positional_encodings.sinusoidal_table(64, 32).astype(np.float64)
    before, after = (table[-distance:], table[:distance]) if distance < 0 else (table[:-distance], table[distance:])
    np.testing.assert_allclose(positional_encodings.shift_encoding(before, distance), after, atol=2e-6)


def test_sinusoidal_table_is_the_formula():
    assert torch.equal(
        torch.from_numpy(positional_encodings.sinusoidal_table(5, 4)), transformer.positions.sinusoidal_encoding(5, 4)
    )


SENTENCE = "The dog sleeps under the table."
KINDS = ("translator", "bert", "sentiment")  # sinusoidal, rotary, relative: encoders, in which words can swap positions


def _model(scheme: str):
    config = transformer.ModelConfig(
        kind="encoder-only", vocabulary_size=50, d_model=16, n_heads=2, d_ff=24, n_encoder_layers=2, n_decoder_layers=0,
        max_length=20, positions=scheme,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = transformer.build_model(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.3 * torch.randn_like(parameter)
    return model


def _encode(model, ids, edits=()):
    with torch.inference_mode(), transformer.record(edits):
        return model.encode(torch.tensor([ids]))[0].numpy()


@pytest.mark.parametrize("scheme", ["sinusoidal", "learned", "rotary", "relative"])
def test_other_positions_are_the_same_as_other_places_of_the_words(scheme):
    model, ids, order = _model(scheme), [7, 8, 9, 10, 11], [3, 0, 4, 1, 2]
    edited = _encode(model, ids, reordered_positions(model, "encoder", order))
    sentence = [0] * 5
    for token, place in zip(ids, order, strict=True):
        sentence[place] = token
    really = _encode(model, sentence)
    np.testing.assert_allclose(edited, really[order], atol=1e-5)
    assert np.abs(edited - _encode(model, ids)).max() > 1e-3


@pytest.mark.parametrize("scheme", ["sinusoidal", "learned", "rotary", "relative"])
def test_without_positions_the_order_of_the_words_means_nothing(scheme):
    model, ids, order = _model(scheme), [7, 8, 9, 10, 11], [3, 0, 4, 1, 2]
    edits = without_positions(model, "encoder")
    plain = _encode(model, ids, edits)
    mixed = _encode(model, [ids[place] for place in order], edits)
    np.testing.assert_allclose(mixed, plain[order], atol=1e-5)


def test_a_model_without_positions_has_nothing_to_edit():
    model = _model("none")
    assert without_positions(model, "encoder") == () and reordered_positions(model, "encoder", [1, 0]) == ()


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_the_edits_work_while_a_trace_is_made(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    stack = "encoder" if checkpoint.config.has_encoder else "decoder"
    before = transformer.trace(checkpoint, SENTENCE, target="Le chien" if checkpoint.config.has_decoder else None)
    n = len(checkpoint.tokenizer.encode(SENTENCE))
    for edits in (
        without_positions(checkpoint.model, stack),
        reordered_positions(checkpoint.model, stack, list(range(n))[::-1]),
    ):
        after = transformer.trace(checkpoint, SENTENCE, edits=edits)
        assert len(after.tokens(stack)) >= n
        assert not np.array_equal(
            after.values(f"{stack}.layers.0.residual.out")[:n], before.values(f"{stack}.layers.0.residual.out")[:n]
        )


def test_an_order_that_is_none_is_refused(tiny_checkpoint):
    model = tiny_checkpoint("translator").model
    with pytest.raises(ValueError, match=r"\[0, 2\]"):
        reordered_positions(model, "encoder", [0, 2])
    with pytest.raises(ValueError, match="reads only"):
        transformer.trace(
            tiny_checkpoint("translator"), "The", edits=reordered_positions(model, "encoder", list(range(30)))
        )


IDS = (5, 9, 4, 17)


class Loaded:
    """Return only the parts of a checkpoint that the measurement needs."""

    def __init__(self, model):
        self.model, self.config = model, model.config


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


def test_rotary_positions_change_nothing_at_distance_0():
    model = tiny.random_model("encoder-only", positions="rotary")
    measured, distances = measured_position_scores(Loaded(model), IDS, stack="encoder", n_positions=16)
    np.testing.assert_allclose(measured[:, distances == 0], 0, atol=1e-5)


def test_what_cannot_be_measured_is_refused():
    model = Loaded(tiny.random_model("decoder-only"))
    with pytest.raises(ValueError, match="no encoder"):
        measured_position_scores(model, IDS, stack="encoder", n_positions=8)
    with pytest.raises(ValueError, match="reads 2 to 24"):
        measured_position_scores(model, IDS, stack="decoder", n_positions=25)
