"""The parts of a layer, read from the modules of every family and of the paper's model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.foreign_checkpoints import FOREIGN
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
def test_every_family_says_what_it_is(family: Callable, name: str) -> None:
    model = family(name).model
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
