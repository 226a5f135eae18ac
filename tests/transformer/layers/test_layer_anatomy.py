"""The parts of a layer, read from the modules of every family; all parameters counted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import transformer
from tests.foreign_checkpoints import FOREIGN
from transformer.layers.costs import parameter_costs, parameter_statistics, shares_of_parts
from transformer.layers.layer_anatomy import LayerPart, anatomy
from transformer.models import Model
from transformer.toy.tiny_models import LLAMA, paper_model, tiny_llama


def parts_of(model: Model, stack: str, layer: int = 0) -> dict[str, LayerPart]:
    return {part.name: part for part in anatomy(model, stack, layer)}


def test_the_papers_layer_beside_a_llamas() -> None:
    paper, llama = parts_of(paper_model(), "encoder"), parts_of(tiny_llama(), "decoder")
    assert paper["order"].formula == r"x \leftarrow N(x + A(x)),\; x \leftarrow N(x + F(x))"
    assert llama["order"].formula == r"x \leftarrow x + A(N(x)),\; x \leftarrow x + F(N(x))"
    assert dict(paper["norms"].facts)["kind of norm"] == "LayerNorm"
    assert dict(llama["norms"].facts)["kind of norm"] == "RMSNorm"
    assert dict(llama["attention"].facts)["key and value heads"] == "2 × 8"
    assert paper["feed-forward"].formula == r"F(x) = f(x W_1 + b_1)\, W_2 + b_2"
    assert llama["feed-forward"].formula == r"F(x) = \big(f(x W_g) \odot (x W_1)\big)\, W_2"
    d, ff = LLAMA["hidden_size"], LLAMA["intermediate_size"]
    assert dict(llama["size"].facts)["numbers in the layer"] == 2 * d * d + 2 * d * d // 4 + 3 * d * ff + 2 * d
    assert [one.name for one in anatomy(paper_model(), "decoder", 1)] == list(llama)
    assert all(len(paper[name].facts) == len(llama[name].facts) for name in paper)


def test_tiny_models_are_the_same_for_the_same_seed_and_compute() -> None:
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        assert torch.equal(tiny_llama()(ids), tiny_llama()(ids))
        assert not torch.equal(tiny_llama()(ids), tiny_llama(1)(ids))
        assert torch.isfinite(paper_model()(ids, ids)).all()


ORDERS = {
    "hf-neox": r"x \leftarrow x + A(N_1(x)) + F(N_2(x))",
    "hf-gemma2": r"x \leftarrow x + N'(A(N(x))),\; x \leftarrow x + N'(F(N(x)))",
    "hf-bert": r"x \leftarrow N(x + A(x)),\; x \leftarrow N(x + F(x))",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_every_family_says_what_it_is(guest: Callable, name: str) -> None:
    model = guest(name).model
    for stack in (stack for stack in ("encoder", "decoder") if hasattr(model, stack)):
        found = parts_of(model, stack)
        facts = {what: value for part in found.values() for what, value in part.facts}
        block = getattr(model, stack).layers[0]
        assert found["order"].formula == ORDERS.get(name, found["order"].formula)
        assert facts["numbers in the layer"] == sum(p.numel() for p in block.parameters())
        assert facts["kind of norm"] == type(block.self_attention_norm).__name__
        assert ("tanh" in found["attention"].formula) == (name == "hf-gemma2")
        assert (r"\sqrt" in found["attention"].formula) == (name != "hf-t5")
        assert (facts["biases of Q, K, V"] == "yes") == (name not in ("hf-t5", "hf-gemma2"))
        places = {"hf-t5": "relative", "hf-marian": "sines and cosines"}
        usual = "rotary" if name in ("hf-llama", "hf-gemma2", "hf-neox") else "learned"
        assert facts["kind of positions"] == places.get(name, usual)


# ---- parameters ------------------------------------------------------------------------------------------------------


def test_parameters_of_known_parts(tiny_checkpoint):
    model = tiny_checkpoint("translator").model
    d, ff, found = model.config.d_model, model.config.d_ff, parameter_costs(model)
    assert found["self-attention"] == 2 * found["cross-attention"] == 4 * 4 * d * (d + 1)
    assert found["feed-forward"] == 4 * (2 * d * ff + d + ff)
    assert found["LayerNorm"] == 2 * d * (2 * 2 + 2 * 3 + 2)
    assert found["projection"] == d * model.config.vocabulary_size
    assert found["positions"] == 0  # sinusoidal: a formula


def test_a_tied_matrix_counts_where_it_is_first_used(tiny_checkpoint):
    found = parameter_costs(tiny_checkpoint("bert").model)
    assert found["embedding"] == 16 * (tiny_checkpoint("bert").config.vocabulary_size + 2), "E and two segments"
    assert found["next-sentence head"] == 16 * 16 + 16 + 16 * 2 + 2
    assert found["projection"] == 0


@pytest.mark.parametrize("name", ["en-fr", "vit-digits"])
def test_two_kinds_of_parts_have_most_of_the_parameters_as_the_checkpoint_page_says(name):
    model = transformer.load(f"checkpoints/{name}").model
    shares = shares_of_parts(model)
    assert sum(shares.values()) == pytest.approx(1) and [*shares.values()] == sorted(shares.values(), reverse=True)
    assert sum([*shares.values()][:2]) > 0.5
    feed_forward = sum(row.numbers for row in parameter_statistics(model) if ".feed_forward." in row.name)
    assert shares["feed-forward"] == pytest.approx(feed_forward / model.n_parameters)


def test_statistics_are_those_of_the_weights_and_cover_all_of_them(tiny_checkpoint):
    model = tiny_checkpoint("bert").model  # tied: the embedding is also the projection
    rows = parameter_statistics(model)
    assert sum(row.numbers for row in rows) == model.n_parameters
    assert not any("vocabulary_projection" in row.name for row in rows)
    for row in rows:
        values = model.get_parameter(row.name).detach().numpy().astype(np.float64)
        assert row.shape == values.shape
        np.testing.assert_allclose(
            [row.mean, row.std, row.largest], [values.mean(), values.std(), np.abs(values).max()], atol=1e-6
        )
