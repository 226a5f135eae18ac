"""Heads without a sentence: circuits equal the full matrices, the effect on one token, copying."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from tests.transformer.copying import COPYING, copying_checkpoint
from tests.transformer.tiny import random_model
from transformer.heads.head_circuits import (
    Circuit,
    embeddings,
    head_matrices,
    output_value_circuit,
    query_key_circuit,
    written_words,
)
from transformer.heads.head_roles import copying_measures

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


def test_heads_that_share_keys(guest):
    model = guest("hf-llama").model
    first, second, third = (head_matrices(model, "decoder", "self", layer=0, head=head) for head in (0, 2, 3))
    assert torch.equal(first.key, second.key) and torch.equal(first.value, second.value)
    assert not torch.equal(first.key, third.key) and not torch.equal(first.query, second.query)
    with pytest.raises(ValueError, match="no head 6; this model has heads 0 to 5"):
        head_matrices(model, "decoder", "self", layer=0, head=6)


@pytest.mark.parametrize(("kind", "count"), [("translator", 8), ("gpt", 4), ("bert", 4), ("sentiment", 0)])
def test_every_head_that_writes_words_has_a_score(tiny_checkpoint, kind: str, count: int) -> None:
    checkpoint = tiny_checkpoint(kind)
    found = copying_measures(checkpoint)
    assert len(found) == count and all(-1 <= one.score <= 1 and one.chance == 0 for one in found.values())
    for (stack, which, layer, head), one in found.items():
        circuit = output_value_circuit(checkpoint.model, stack, which, layer=layer, head=head)
        assert one.score == pytest.approx(circuit.copying_score, abs=1e-9)


def test_the_head_that_copies_is_told_from_those_that_write_nothing(tiny_tokenizer) -> None:
    found = copying_measures(copying_checkpoint(tiny_tokenizer))
    assert list(found) == [("decoder", "self", 0, COPYING)] and found["decoder", "self", 0, COPYING].score > 0.95
