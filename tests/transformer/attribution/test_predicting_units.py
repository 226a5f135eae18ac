"""Feed-forward units by their direct effect on the output, and a run without one of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from transformer.attribution.direct_logit_attribution import attribute, predicting_units, strongest_units
from transformer.interventions.experiment import same_tokens, without_unit
from transformer.layers.residual_stream import Part
from transformer.predictions.answer_probabilities import prediction_rows

ROOT = Path(__file__).resolve().parents[3]
SENTENCE = "a funny but dull film"


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_units_of_a_layer_and_its_bias_add_up_to_the_layer(tiny_checkpoint, name: str) -> None:
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    found = attribute(trace, None if name == "tiny-sentiment" else 2)
    stack = found.question.stack
    for layer in range(trace.n_layers(stack)):
        module = trace.checkpoint.model.get_submodule(f"{stack}.layers.{layer}.feed_forward")
        n_units = module.output_projection.in_features
        every = [one for one in strongest_units(trace, found, most=n_units * 9) if one.layer == layer]
        assert len(every) == n_units
        bias = module.output_projection.bias
        own = found.feed_forward_readings[f"{stack}.layers.{layer}.feed_forward"]
        rest = 0.0 if bias is None else float((own @ bias.detach().double().numpy()).sum())
        total = sum(one.value for one in every) + rest
        assert total == pytest.approx(found.of(Part("feed_forward", layer)), abs=1e-5)


@pytest.mark.parametrize("name", ["en-fr", "gpt-en", "sentiment"])
def test_the_units_are_those_of_the_least_certain_row_the_strongest_first(name: str) -> None:
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / name), "The cat sat on the mat.")
    found, rows = predicting_units(trace, most=4), prediction_rows(trace)
    assert [one.value for one in found] == sorted((one.value for one in found), reverse=True) and found[3].value > 0
    best = np.exp(rows.log_probabilities(trace)).max(axis=-1)
    if name != "sentiment":
        assert {one.position for one in found} == {rows.rows[int((best * (1 - best)).argmax())]}


def test_a_run_without_a_unit_is_that_of_a_model_that_lacks_its_output_weights(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("tiny-gpt")
    trace = transformer.trace(checkpoint, SENTENCE)
    silent = without_unit(trace, "decoder", 1, 5)
    weight = checkpoint.model.decoder.layers[1].feed_forward.output_projection.weight
    column = weight[:, 5].detach().clone()
    with torch.no_grad():
        weight[:, 5] = 0
        expected = same_tokens(trace)
        weight[:, 5] = column
    np.testing.assert_allclose(silent.values("decoder.logits"), expected.values("decoder.logits"), atol=1e-6)
    assert np.abs(silent.values("decoder.logits") - trace.values("decoder.logits")).max() > 1e-4
