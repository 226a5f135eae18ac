"""Information flow routes: edges into a node sum to 1, and each equals its formula in plain loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.foreign_checkpoints import FOREIGN
from transformer.attribution.information_flow import Edge, Node, edges_into, information_flow, start_of
from transformer.errors import MessageError

SENTENCE = "The old man told us a story."


@pytest.fixture(scope="module", params=["translator", "gpt", "bert", "sentiment"])
def trace(request: pytest.FixtureRequest, tiny_checkpoint: Callable) -> transformer.Trace:
    return transformer.trace(tiny_checkpoint(request.param), SENTENCE)


def near(whole: np.ndarray, term: np.ndarray) -> float:
    return max(
        0.0, sum(abs(float(y)) for y in whole) - sum(abs(float(y - z)) for y, z in zip(whole, term, strict=True))
    )


def step(trace: transformer.Trace, name: str, kind: str, token: int, before: np.ndarray) -> dict:
    """Return {("residual", −1, token): share, (kind, head, key): share} of one attention, term by term."""
    model = trace.checkpoint.model
    attention = model.get_submodule(f"{name}.{kind}_attention")
    matrix = attention.output_projection.weight.detach().numpy()
    alpha, value = (trace.values(f"{name}.{kind}_attention.{part}") for part in ("weights", "value"))
    if trace.checkpoint.config.norm == "post":
        whole = trace.values(f"{name}.{kind}_attention_norm.input")[token]
    else:
        whole = trace.values(f"{name}.residual.after_{kind}_attention")[token]
    found = {("residual", -1, token): near(whole, before)}
    width = attention.d_head
    for head in range(attention.n_heads):
        for key in range(alpha.shape[2]):
            term = matrix[:, head * width : (head + 1) * width] @ (alpha[head, token, key] * value[head, key])
            found[kind, head, key] = near(whole, term)
    total = sum(found.values())
    return {place: share / total for place, share in found.items()}


def test_the_edges_of_a_node_are_what_plain_loops_give_and_sum_to_1(trace: transformer.Trace) -> None:
    stack = trace.stacks[-1]
    for level, token in ((1, 0), (2, 3)):
        name = f"{stack}.layers.{level - 1}"
        expected = step(trace, name, "self", token, trace.values(f"{name}.residual.in")[token])
        if f"{name}.cross_attention.weights" in trace:
            middle = trace.values(f"{name}.residual.after_self_attention")[token]
            crossed = step(trace, name, "cross", token, middle)
            kept = crossed.pop(("residual", -1, token))
            expected = {place: share * kept for place, share in expected.items()} | crossed
        edges, mixed = edges_into(trace, Node(stack, level, token))
        found = {(edge.kind, edge.head, edge.source.token): edge.share for edge in edges}
        assert sum(found.values()) == pytest.approx(1)
        assert found == pytest.approx({place: share for place, share in expected.items() if share}, rel=1e-3, abs=1e-5)
        assert 0 <= mixed <= 1
        levels = {edge.kind: (edge.source.stack, edge.source.level) for edge in edges}
        assert levels["residual"] == (stack, level - 1) and levels.get("cross", ("encoder", 2)) == ("encoder", 2)


def test_all_edges_together_carry_the_whole_answer_to_the_embeddings(trace: transformer.Trace) -> None:
    start = start_of(trace, 3)
    assert sum(start.values()) == pytest.approx(1)
    whole = information_flow(trace, start, threshold=1e-12)
    assert sum(weight for node, weight in whole.weights.items() if node.level == 0) == pytest.approx(1, abs=1e-5)
    some = information_flow(trace, start, threshold=0.2)
    assert set(some.edges) <= set(whole.edges) and len(some.edges) < len(whole.edges)
    assert set(some.start) <= set(some.weights) and {edge.source for edge in some.edges} <= set(some.weights)


def test_thresholds_out_of_range_are_refused(trace: transformer.Trace) -> None:
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match="must lie above 0"):
            information_flow(trace, start_of(trace, 0), threshold=wrong)


@pytest.mark.parametrize("name", FOREIGN)
def test_other_families_sum_to_1_or_are_refused(family: Callable, name: str) -> None:
    trace = transformer.trace(family(name), SENTENCE)

    def flow() -> tuple[Edge, ...]:
        return information_flow(trace, start_of(trace, 1), threshold=1e-9).edges

    if name == "hf-deberta":
        with pytest.raises(MessageError, match="convolution"):
            flow()
        return
    edges = flow()
    for node in {edge.target for edge in edges}:
        assert sum(edge.share for edge in edges if edge.target == node) == pytest.approx(1, abs=1e-5)
    assert ("feed_forward" in {edge.kind for edge in edges}) == (name == "hf-neox")
