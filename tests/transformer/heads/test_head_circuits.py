"""Heads without a sentence: thin factors equal the full matrices, and a head's effect on one token."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from tests.transformer.tiny import random_model
from transformer.heads.head_circuits import (
    WAYS,
    Circuit,
    composition,
    embeddings,
    head_matrices,
    output_value_circuit,
    query_key_circuit,
    written_words,
)

PLACES = [
    ("translator", "decoder", "cross"),
    ("translator", "encoder", "self"),
    ("gpt", "decoder", "self"),
    ("bert", "encoder", "self"),
    ("sentiment", "encoder", "self"),
]


@pytest.mark.parametrize(("name", "stack", "kind"), PLACES)
def test_the_small_matrix_has_the_eigenvalues_of_the_whole_one(tiny_checkpoint, name, stack, kind):
    model = tiny_checkpoint(name).model
    circuit = output_value_circuit(model, stack, kind, layer=1, head=1)
    assert circuit.read_out == (stack == "decoder" or name == "bert")
    small = circuit.eigenvalues()
    whole = torch.linalg.eigvals(circuit.left @ circuit.right.T)
    strongest = whole[whole.abs().argsort(descending=True)[: len(small)]]
    np.testing.assert_allclose(np.sort(small.abs()), np.sort(strongest.abs()), rtol=1e-6)
    assert float(small.sum().real) == pytest.approx(float(torch.trace(circuit.left @ circuit.right.T)), rel=1e-6)
    assert circuit.copying_score == pytest.approx(float(whole.real.sum() / whole.abs().sum()), abs=1e-5)
    assert -1 <= circuit.copying_score <= 1


@pytest.mark.parametrize(("name", "stack", "kind"), PLACES)
def test_written_words_are_rows_of_the_circuit(tiny_checkpoint, name, stack, kind):
    model, tokens = tiny_checkpoint(name).model, (7, 30, 2)
    circuit = output_value_circuit(model, stack, kind, layer=1, head=1)
    found = written_words(model, stack, kind, layer=1, head=1, tokens=tokens, most=4)
    assert tuple(one.token for one in found) == tokens
    for one in found:
        order = (circuit.right @ circuit.left[one.token]).argsort(descending=True).tolist()
        assert list(one.raised) == order[:4] and list(one.lowered) == order[:-5:-1]


def test_a_head_that_writes_nothing_pushes_no_words():
    model = copy.deepcopy(random_model("decoder-only"))
    with torch.no_grad():
        model.decoder.layers[0].self_attention.output_projection.weight.zero_()
    assert written_words(model, "decoder", "self", layer=0, head=0, tokens=[3, 4]) == ()


def test_a_head_that_copies_and_one_that_suppresses():
    factor = torch.randn(30, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    assert Circuit(factor, factor).copying_score == pytest.approx(1)
    assert Circuit(factor, -factor).copying_score == pytest.approx(-1)
    assert math.isnan(Circuit(factor, 0 * factor).copying_score)


@pytest.mark.parametrize(("name", "stack", "kind"), PLACES[:3])
@torch.inference_mode()
def test_scores_and_writing_of_one_token_in_plain_numbers(tiny_checkpoint, name, stack, kind):
    """Through the layers themselves: the norm's γ and centring, one projection, one head's columns of W_O."""
    model = tiny_checkpoint(name).model
    block, head, width = model.get_submodule(stack).layers[1], 1, model.config.d_head
    attention, norm = getattr(block, f"{kind}_attention"), getattr(block, f"{kind}_attention_norm")
    behind = model.encoder.final_norm if kind == "cross" else norm
    own = slice(head * width, (head + 1) * width)

    def normed(vector: torch.Tensor, norm) -> torch.Tensor:
        return (vector - vector.mean()) * norm.weight.double()

    looks = embeddings(model, stack)[7]
    seen = embeddings(model, "encoder" if kind == "cross" else stack)[8]
    query = attention.query_projection.weight.double()[own] @ normed(looks, norm)
    key = attention.key_projection.weight.double()[own] @ normed(seen, behind)
    circuit = query_key_circuit(model, stack, kind, layer=1, head=head)
    assert float(circuit.left[7] @ circuit.right[8]) == pytest.approx(float(query @ key) / math.sqrt(width))
    value = attention.value_projection.weight.double()[own] @ normed(seen, behind)
    written = attention.output_projection.weight.double()[:, own] @ value
    circuit = output_value_circuit(model, stack, kind, layer=1, head=head)
    part = model.get_submodule(stack)
    if circuit.read_out:
        expected = float(part.vocabulary_projection.weight.double()[9] @ normed(written, part.final_norm))
    else:
        expected = float(embeddings(model, stack)[9] @ written)
    assert float(circuit.left[8] @ circuit.right[9]) == pytest.approx(expected)


def test_the_strongest_pairs_are_those_of_the_whole_matrix(tiny_checkpoint):
    said: list[tuple[int, int]] = []
    circuit = query_key_circuit(tiny_checkpoint("gpt").model, "decoder", "self", layer=0, head=0)
    found = circuit.strongest(12, progress=lambda done, total: said.append((done, total)))
    whole = (circuit.left @ circuit.right.T).numpy()
    order = np.argsort(-whole, axis=None)[:12]
    np.testing.assert_allclose([value for *_, value in found], whole.ravel()[order], rtol=1e-5)
    assert [row * whole.shape[1] + column for row, column, _ in found] == order.tolist()
    assert said == [(256, 400), (400, 400)], "a block of rows at a time"


def test_heads_that_share_keys(family):
    model = family("hf-llama").model
    first, second, third = (head_matrices(model, "decoder", "self", layer=0, head=head) for head in (0, 2, 3))
    assert torch.equal(first.key, second.key) and torch.equal(first.value, second.value)
    assert not torch.equal(first.key, third.key) and not torch.equal(first.query, second.query)
    with pytest.raises(ValueError, match="no head 6; this model has heads 0 to 5"):
        head_matrices(model, "decoder", "self", layer=0, head=6)


@pytest.mark.parametrize("name", ["hf-gemma2", "hf-neox", "hf-deberta", "hf-bert-classes", "hf-t5", "hf-marian"])
def test_other_families_have_circuits(family, name):
    model = family(name).model
    stack = "decoder" if model.config.has_decoder else "encoder"
    kind = "cross" if model.config.kind == "encoder-decoder" else "self"
    circuit = output_value_circuit(model, stack, kind, layer=1, head=1)
    assert np.isfinite(circuit.copying_score) and circuit.read_out == (stack == "decoder")
    assert len(query_key_circuit(model, stack, kind, layer=1, head=1).strongest(5)) == 5
    scores = composition(model, stack, way="query").scores
    assert np.nanmin(scores) >= 0 and np.nanmax(scores) <= 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "stack"), [("translator", "decoder"), ("gpt", "decoder"), ("bert", "encoder")])
def test_composition_against_the_whole_matrices(tiny_checkpoint, name, stack, way):
    model = tiny_checkpoint(name).model
    found = composition(model, stack, way=way)
    n_known = 0
    for (row, column), score in np.ndenumerate(found.scores):
        later, earlier = found.later[row], found.earlier[column]
        reads_encoder = later.kind == "cross" and way != "query"
        in_one_layer = earlier.layer == later.layer and (earlier.kind, later.kind) == ("self", "cross")
        before = earlier.stack == later.stack and (earlier.layer < later.layer or in_one_layer)
        if not (earlier.stack == "encoder" if reads_encoder else before):
            assert np.isnan(score)
            continue
        one = head_matrices(model, *later[:2], layer=later.layer, head=later.head)
        other = head_matrices(model, *earlier[:2], layer=earlier.layer, head=earlier.head)
        reads = {"query": one.key.T @ one.query, "key": one.query.T @ one.key, "value": one.output @ one.value}[way]
        writes = other.output @ other.value
        expected = torch.linalg.norm(reads @ writes) / (torch.linalg.norm(reads) * torch.linalg.norm(writes))
        assert score == pytest.approx(float(expected), rel=1e-6)
        n_known += 1
    assert n_known and found.random == pytest.approx(model.config.d_model**-0.5)


def test_random_heads_come_to_what_is_said(tiny_checkpoint):
    generator = torch.Generator().manual_seed(0)
    ratios = []
    for _ in range(20):
        tall, wide = (torch.randn(2, *shape, dtype=torch.double, generator=generator) for shape in ((64, 8), (8, 64)))
        reads, writes = tall @ wide
        ratios.append(float(torch.linalg.norm(reads @ writes) / torch.linalg.norm(reads) / torch.linalg.norm(writes)))
    assert np.mean(ratios) == pytest.approx(64**-0.5, rel=0.1)
    with pytest.raises(ValueError, match="choose one of query, key, value"):
        composition(tiny_checkpoint("gpt").model, "decoder", way="output")


def test_one_layer_has_nobody_to_read():
    found = composition(random_model("decoder-only", n_decoder_layers=1), "decoder", way="key")
    assert found.scores.shape == (2, 0) and found.earlier == ()
