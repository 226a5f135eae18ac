"""A logit is the sum of its parts' contributions, compared with plain loops and with the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from tests.foreign_checkpoints import FOREIGN
from tests.shipped import SHIPPED
from tests.transformer.guests.tiny_guests import guest_checkpoint
from tests.transformer.test_pictures import PICTURE
from transformer.attribution.direct_logit_attribution import Attribution, attribute, shares_of_keys, strongest_sources
from transformer.config import PictureConfig
from transformer.layers.residual_stream import Part
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
        assert found.question.token == logits.argmax() and found.logit == logits.max()
        assert is_exact(found) and found.deviation > 0
        found = attribute(trace, position, token=1, against=0)
        assert found.logit == pytest.approx(float(logits[1]) - float(logits[0])) and is_exact(found)


def test_a_head_without_a_bias(tmp_path):
    """ModernBERT's head multiplies by a matrix and adds nothing before its activation function."""
    found = attribute(transformer.trace(transformer.load(guest_checkpoint("modernbert", tmp_path)), "The cat sat."), 1)
    assert is_exact(found)


@pytest.mark.parametrize("name", FOREIGN)
def test_other_families(family, name):
    trace = transformer.trace(family(name), SENTENCE)
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


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_checkpoints_of_the_repository(path):
    checkpoint = transformer.load(path)
    reads = PICTURE if isinstance(checkpoint.config, PictureConfig) else "The old ___ read a good book."
    target = "My name is Tom." if checkpoint.config.has_encoder and checkpoint.config.has_decoder else None
    trace = transformer.trace(checkpoint, reads, target=target)
    assert is_exact(attribute(trace, position_in(trace)))


def carried_forward(trace: Trace, stack: str, row: int) -> dict[Part, np.ndarray]:
    """Return the contribution of each part to the last residual stream, by plain loops over the layers."""
    model = trace.checkpoint.model.get_submodule(stack)
    vectors = {Part("token"): trace.values(f"{stack}.embedding.token")[row].astype(np.float64)}
    for part in ("position", "segment"):
        if f"{stack}.embedding.{part}" in trace:
            vectors[Part(part)] = trace.values(f"{stack}.embedding.{part}")[row].astype(np.float64)

    def through(norm, name: str, part: Part) -> None:
        gamma, beta = (p.detach().double().numpy() for p in (norm.weight, norm.bias))
        for known, vector in vectors.items():
            centred = np.array([number - sum(vector) / len(vector) for number in vector])
            vectors[known] = gamma * centred / float(trace.values(f"{name}.std")[row])
        vectors[part] = beta

    for index, layer in enumerate(model.layers):
        for kind in ("self_attention", "cross_attention", "feed_forward"):
            name, sublayer = f"{stack}.layers.{index}.{kind}", getattr(layer, kind, None)
            if sublayer is None:
                continue
            if kind == "feed_forward":
                vectors[Part(kind, index)] = trace.values(f"{name}.output")[row].astype(np.float64)
            else:
                matrix = sublayer.output_projection.weight.detach().double().numpy()
                for head in range(sublayer.n_heads):
                    vector = np.zeros(len(matrix))
                    for channel in range(sublayer.d_head):
                        column = matrix[:, head * sublayer.d_head + channel]
                        vector += column * trace.values(f"{name}.context")[head, row, channel]
                    vectors[Part(kind, index, head)] = vector
                vectors[Part(f"{kind}_bias", index)] = sublayer.output_projection.bias.detach().double().numpy()
            if not layer.pre_norm:
                through(getattr(layer, f"{kind}_norm"), f"{name}_norm", Part(f"{kind}_norm", index))
    if model.final_norm is not None:
        through(model.final_norm, f"{stack}.final_norm", Part("final_norm"))
    return vectors


@pytest.mark.parametrize(("kind", "stack"), [("translator", "decoder"), ("gpt", "decoder"), ("bert", "encoder")])
def test_plain_loops_from_the_other_end(tiny_checkpoint, kind, stack):
    """The library carries one vector backwards; here every part's vector is carried forwards."""
    checkpoint = tiny_checkpoint(kind)
    trace = transformer.trace(checkpoint, SENTENCE)
    found = attribute(trace, 2, token=7, against=9)
    weight = checkpoint.model.get_submodule(stack).vocabulary_projection.weight.detach().double().numpy()
    expected = {part: vector @ (weight[7] - weight[9]) for part, vector in carried_forward(trace, stack, 2).items()}
    assert set(found.parts) == set(expected)
    np.testing.assert_allclose(found.values, [expected[part] for part in found.parts], rtol=1e-6, atol=1e-6)


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


def test_equal_contributions_are_listed_in_the_order_of_the_model(tiny_checkpoint):
    """Whatever the seed of Python's string hashes: the kinds used to come from a set."""
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    found = attribute(trace, 3, against=0)
    none = replace(found, readings={name: np.zeros_like(values) for name, values in found.readings.items()})
    listed = dict.fromkeys((source.part.layer, source.part.kind) for source in strongest_sources(trace, none))
    assert list(listed) == [(layer, kind) for layer in (0, 1) for kind in ("self_attention", "cross_attention")]


def test_one_key_of_one_head_in_plain_numbers(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, SENTENCE)
    found = attribute(trace, 1, token=5)
    decoder, name = checkpoint.model.decoder, "decoder.layers.1.cross_attention"
    width = checkpoint.config.d_head
    written = trace.values(f"{name}.value")[1, 4] @ (
        decoder.layers[1].cross_attention.output_projection.weight[:, width : 2 * width].detach().numpy().T
    )
    written = written * trace.values(f"{name}.weights")[1, 1, 4]
    centred = (written - written.mean()) / trace.values("decoder.final_norm.std")[1]
    gamma, row = decoder.final_norm.weight.detach().numpy(), decoder.vocabulary_projection.weight[5].detach().numpy()
    share = shares_of_keys(trace, found, kind="cross_attention", layer=1)[1, 4]
    assert share == pytest.approx(float(centred * gamma @ row), rel=1e-4)


def test_what_an_edit_put_in_between_is_a_part_of_its_own(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    edits = [transformer.remove_residual(checkpoint.model, "decoder", layer=1, which="feed_forward")]
    trace = transformer.trace(checkpoint, SENTENCE, edits=edits)
    found = attribute(trace, 3)
    assert abs(found.of(Part("edits"))) > 1e-3 and found.total == pytest.approx(found.logit)
    plain = attribute(replace(trace, run=replace(trace.run, edits=())), 3)
    assert Part("edits") not in plain.parts and plain.deviation > 1e-3


def test_tables_and_labels(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    found = attribute(trace, 0)
    assert found.table("cross_attention").shape == (2, 2) and found.table("feed_forward").shape == (2, 1)
    assert found.table("cross_attention")[1, 0] == found.of(Part("cross_attention", 1, 0))
    assert len({part.label for part in found.parts}) == len(found.parts), "no two rows of a picture have one name"
    assert Part("cross_attention", 1, 0).label == "cross-attention 1.0"
    first, second = found.strongest(2)
    assert abs(found.of(first)) >= abs(found.of(second)) >= np.sort(np.abs(found.values))[-2]
    with pytest.raises(ValueError, match="no part 'convolution'; there are token, position, self_attention"):
        found.table("convolution")


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
