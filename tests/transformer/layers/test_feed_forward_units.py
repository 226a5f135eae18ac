"""Units' outputs are exact parts of the logits, and inactive units are those the activation zeroes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.interventions.rows_of_zeros import without_row
from transformer.interventions.silenced_unit import unit_effect, unit_effect_on_output
from transformer.layers.feed_forward_units import (
    most_active_units,
    norms_on_the_way,
    output_vectors,
    silent_share,
    strongest_units,
    unit_words,
)
from transformer.predictions.answer_probabilities import prediction_rows, softmax

SENTENCE = "We went to the sea, and the sea was cold."


def traced(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    return checkpoint, transformer.trace(checkpoint, SENTENCE)


def test_relu_units_are_silent_when_they_are_zero(tiny_checkpoint):
    _, trace = traced(tiny_checkpoint, "translator")
    share = silent_share(trace, "decoder")
    for layer in range(2):
        hidden = trace.values(f"decoder.layers.{layer}.feed_forward.hidden")
        assert np.allclose(share[layer], (hidden == 0).mean(axis=1))
    assert 0 < share.min() and share.max() < 1


def test_post_norm_parts_pass_all_later_norms(tiny_checkpoint):
    _, trace = traced(tiny_checkpoint, "bert")
    assert norms_on_the_way(trace, "encoder", 0) == (
        "encoder.layers.0.feed_forward_norm",
        "encoder.layers.1.self_attention_norm",
        "encoder.layers.1.feed_forward_norm",
    )


def test_words_of_a_unit_are_its_part_of_the_logits(tiny_checkpoint):
    checkpoint, trace = traced(tiny_checkpoint, "gpt")
    position = 5
    unit = strongest_units(trace, "decoder", 1, position, count=1)[0]
    (words,) = unit_words(trace, "decoder", 1, position, units=[unit], words=4)
    assert words.logits and len(words.up) == len(words.down) == 4
    assert words.up[0].effect >= words.up[1].effect > words.down[1].effect >= words.down[0].effect
    # Measured: remove the unit, with μ and σ of the final norm held fixed, and read the logit of that word.
    model, final = checkpoint.model, checkpoint.model.decoder.final_norm
    x = torch.tensor(trace.values("decoder.layers.1.residual.out")[position])
    removed = x - float(words.hidden) * model.decoder.layers[1].feed_forward.output_projection.weight[:, unit]
    denominator = float(trace.values("decoder.final_norm.std")[position])
    logits = []
    for stream in (x, removed):
        normalized = (stream - stream.mean()) / denominator * final.weight + final.bias
        logits.append(model.decoder.vocabulary_projection(normalized).detach().numpy())
    for word in (*words.up, *words.down):
        assert logits[0][word.id] - logits[1][word.id] == pytest.approx(word.effect, abs=1e-4)


@pytest.mark.parametrize("kind", ("translator", "sentiment"))
def test_an_encoder_without_words_is_compared_with_the_embedding(tiny_checkpoint, kind):
    checkpoint, trace = traced(tiny_checkpoint, kind)
    (words,) = unit_words(trace, "encoder", 0, 2, units=[3], words=3)
    assert not words.logits
    table = checkpoint.model.encoder.embedding.table.weight.detach().numpy()
    added = words.hidden * output_vectors(checkpoint, "encoder", 0, [3])[0]
    best = words.up[0]
    assert best.effect == pytest.approx(added @ table[best.id] / np.linalg.norm(table[best.id]), abs=1e-5)


def test_units_are_chosen_by_their_absolute_value(tiny_checkpoint):
    _, trace = traced(tiny_checkpoint, "bert")
    hidden = np.abs(trace.values("encoder.layers.0.feed_forward.hidden"))
    strongest = strongest_units(trace, "encoder", 0, 3, count=5)
    assert sorted(hidden[3, list(strongest)], reverse=True) == sorted(hidden[3], reverse=True)[:5]
    active = most_active_units(trace, "encoder", 0, count=6)
    assert hidden.max(axis=0)[active].min() >= np.delete(hidden.max(axis=0), active).max()
    assert list(active) == sorted(active)


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_a_silenced_unit_changes_what_a_row_of_zeros_changes(tiny_checkpoint, name: str) -> None:
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    stack = trace.stacks[-1]
    runs = trace, without_row(trace, stack, 1, 5)
    for found, run in zip(unit_effect(trace, stack, 1, 5, position=1), runs, strict=True):
        if name == "tiny-sentiment":
            expected = softmax(run.values("classifier.logits"))
        else:
            logits = run.values(f"{stack}.logits")[1].astype(np.float64)
            if stack == "decoder":
                logits[list(trace.checkpoint.framing.never)] = -np.inf  # never generated
            expected = softmax(logits)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    output = unit_effect_on_output(trace, stack, 1, 5)
    assert (output is None) == (name in ("tiny-bert", "tiny-sentiment"))
    if output is not None:
        rows = prediction_rows(trace)
        for found, run in zip(output, runs, strict=True):
            np.testing.assert_allclose(found, np.exp(rows.chosen(rows.log_probabilities(run))), atol=1e-6)
