from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from transformer.layers.position_edits import reordered_positions, without_positions

SENTENCE = "The dog sleeps under the table."
KINDS = ("translator", "bert", "sentiment")  # sinusoidal, rotary, relative: encoders, where words may change places


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
