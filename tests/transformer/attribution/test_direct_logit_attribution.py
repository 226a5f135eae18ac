"""A logit is the sum of what its parts and units contribute: compared with loops and the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from tests.foreign_checkpoints import FOREIGN
from tests.shipped import shipped
from transformer.attribution.direct_logit_attribution import (
    Attribution,
    attribute,
    predicting_units,
    shares_of_keys,
    strongest_sources,
    strongest_units,
)
from transformer.layers.residual_stream import Part
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.probes import Edit
from transformer.runs.traces import Trace

SENTENCE = "The old man told us a long story."
KINDS = ("translator", "gpt", "bert", "sentiment")


def position_in(trace: Trace, place: int = 3) -> int | None:
    return None if trace.checkpoint.config.n_classes else place


def is_exact(found: Attribution) -> bool:
    return found.deviation < 1e-5 * max(1.0, np.abs(found.values).max())


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_sum_to_the_logit_at_every_position(tiny_checkpoint, kind):
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE, source_pads=0 if kind == "gpt" else 2)
    stack = "decoder" if kind in ("translator", "gpt") else "encoder"
    real = [token.index for token in trace.tokens(stack) if not token.is_padding]
    for position in [None] if kind == "sentiment" else real:
        logits = trace.values("classifier.logits" if position is None else f"{stack}.logits")
        logits = logits if position is None else logits[position]
        found = attribute(trace, position)
        assert found.target.token == logits.argmax() and found.logit == logits.max()
        assert is_exact(found) and found.deviation > 0
        found = attribute(trace, position, token=1, against=0)
        assert found.logit == pytest.approx(float(logits[1]) - float(logits[0])) and is_exact(found)


@pytest.mark.sample("name", of=3)
@pytest.mark.parametrize("name", FOREIGN)
def test_other_families(guest, name):
    trace = transformer.trace(guest(name), SENTENCE)
    found = attribute(trace, position_in(trace), token=1, against=2)
    assert is_exact(found)
    assert found.gated == ("bert" in name), "BERT's token head and its pooler have a layer of their own"
    assert (found.cap is not None) == (name == "hf-gemma2")
    if found.cap:
        single = attribute(trace, 3, token=1)
        bent = found.cap * np.tanh(single.total / found.cap)
        assert bent == pytest.approx(float(trace.values("decoder.logits")[3, 1]), abs=1e-4)
    kinds = {part.kind for part in found.parts}
    assert ("segment" in kinds) == name.startswith("hf-bert")
    assert ("final_norm" in kinds) == (name in ("hf-gpt2", "hf-neox")), "RMSNorm has no β, post-norm no final norm"


@pytest.mark.parametrize("part", [Part("self_attention", 0, 1), Part("cross_attention", 1, 0), Part("feed_forward", 0)])
def test_a_part_is_its_direct_effect_while_everything_behind_it_is_frozen(tiny_checkpoint, part):
    """Run again without the part, with the outputs of all later sub-layers and the last σ held fixed."""
    checkpoint, row, token = tiny_checkpoint("translator"), 2, 7
    clean = transformer.trace(checkpoint, SENTENCE)
    text = {"target": clean.text}
    clean = transformer.trace(checkpoint, SENTENCE, **text)
    found = attribute(clean, row, token=token)
    name = f"decoder.layers.{part.layer}.{part.kind}.{'output' if part.head < 0 else 'context'}"

    def removed(tensor: torch.Tensor) -> torch.Tensor:
        new = tensor.clone()
        if part.head < 0:
            new[:, row] = 0
        else:
            new[:, part.head, row] = 0
        return new

    order = list(clean.names())
    later = [key for key in order[order.index(name) + 1 :] if key.endswith((".output", "final_norm.std"))]
    own = name.replace("context", "output")
    frozen = [transformer.patch(key, clean.values(key)) for key in later if "norm.output" not in key and key != own]
    without = transformer.trace(checkpoint, SENTENCE, **text, edits=[Edit(name, removed), *frozen])
    change = float(clean.values("decoder.logits")[row, token]) - float(without.values("decoder.logits")[row, token])
    assert change == pytest.approx(found.of(part), abs=2e-5) and abs(change) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_is_the_sum_over_the_keys_it_looked_at(tiny_checkpoint, kind):
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE)
    found = attribute(trace, position_in(trace), against=0)
    kinds = {part.kind for part in found.parts if part.head >= 0}
    assert kinds == ({"self_attention", "cross_attention"} if kind == "translator" else {"self_attention"})
    for attention in kinds:
        shares = [shares_of_keys(trace, found, kind=attention, layer=layer) for layer in range(2)]
        np.testing.assert_allclose(np.sum(shares, axis=-1), found.table(attention), atol=1e-5)
    sources = strongest_sources(trace, found)
    assert sum(source.value for source in sources) == pytest.approx(
        sum(value for part, value in zip(found.parts, found.values, strict=True) if part.head >= 0), abs=1e-5
    )
    assert all(abs(a.value) >= abs(b.value) for a, b in zip(sources, sources[1:], strict=False))
    top = sources[0]
    read = trace.source if top.part.kind == "cross_attention" or kind in ("bert", "sentiment") else trace.target
    assert top.display == read.labels[top.key]
    assert strongest_sources(trace, found, most=3) == sources[:3]


def test_what_an_edit_put_in_between_is_a_part_of_its_own(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    edits = [transformer.remove_residual(checkpoint.model, "decoder", layer=1, which="feed_forward")]
    trace = transformer.trace(checkpoint, SENTENCE, edits=edits)
    found = attribute(trace, 3)
    assert abs(found.of(Part("edits"))) > 1e-3 and found.total == pytest.approx(found.logit)
    plain = attribute(replace(trace, run=replace(trace.run, edits=())), 3)
    assert Part("edits") not in plain.parts and plain.deviation > 1e-3


def test_questions_that_make_no_sense(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("bert"), SENTENCE, source_pads=1)
    with pytest.raises(ValueError, match="position is None; the encoder read the positions 0 to"):
        attribute(trace)
    with pytest.raises(ValueError, match="is padding"):
        attribute(trace, len(trace.source) - 1)
    with pytest.raises(ValueError, match="no token 400; this model has 400"):
        attribute(trace, 0, against=400)
    with pytest.raises(ValueError, match="answers for the whole sentence"):
        attribute(transformer.trace(tiny_checkpoint("sentiment"), SENTENCE), 0)


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_units_of_a_layer_and_its_bias_add_up_to_the_layer(tiny_checkpoint, name: str) -> None:
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    found = attribute(trace, None if name == "tiny-sentiment" else 2)
    stack = found.target.stack
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
    trace = transformer.trace(shipped(name), "The cat sat on the mat.")
    found, rows = predicting_units(trace, most=4), prediction_rows(trace)
    assert [one.value for one in found] == sorted((one.value for one in found), reverse=True) and found[3].value > 0
    best = np.exp(rows.log_probabilities(trace)).max(axis=-1)
    if name != "sentiment":
        assert {one.position for one in found} == {rows.rows[int((best * (1 - best)).argmax())]}
