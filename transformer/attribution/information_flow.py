"""Information flow routes (Ferrando & Voita 2024): from the answer back, which edges made what it was read from.

A node is one token behind one layer. What stands there is a sum: what the token was before, and what every head
brought from every token it looked at. How much of the sum y goes back to one of its terms z is its proximity

    p(z) = max(0, ‖y‖₁ − ‖y − z‖₁),        share(z) = p(z) / Σ p

(§2.2; Ferrando et al. 2022), and the shares of all edges into a node sum to 1. b_O comes from no token, so it has none.
The feed-forward layer mixes no tokens: its share is written at the node. Where attention and feed-forward layer read
one stream (parallel blocks), its term is one more edge from the same token. A norm behind a sub-layer is held fixed, so
that it is linear; with post-norm the sum is looked at before the norm.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transformer.attention_maps.attention_path import output_matrices
from transformer.errors import MessageError
from transformer.layers.residual_stream import CONVOLUTION
from transformer.runs.traces import Trace
from transformer.variants.layer_orders import ParallelLayer

_TOLERANCE = 1e-3  # of the largest number of the sum


class Node(NamedTuple):
    """``token`` of ``stack`` behind ``level`` layers; level 0 is the embedding."""

    stack: str
    level: int
    token: int


class Edge(NamedTuple):
    """``share`` of what stands at ``target`` that came from ``source``, by one ``head`` of ``kind`` ("self", "cross")
    in the layer of the target, or by ``kind`` "residual" or "feed_forward" (head −1)."""

    source: Node
    target: Node
    kind: str
    head: int
    share: float


@dataclass(frozen=True)
class Flow:
    """The edges that are at least ``threshold`` and lead to the answer. ``weights``: of every node that is reached, how
    much of the answer comes through it: Σ over the edges above it of their weight × share; the answer has 1.
    ``feed_forward``: the share of the feed-forward layer at each node."""

    start: Mapping[Node, float]
    threshold: float
    edges: tuple[Edge, ...]
    weights: Mapping[Node, float]
    feed_forward: Mapping[Node, float]


def start_of(trace: Trace, row: int) -> dict[Node, float]:
    """Where the answer is read: one place, or for a classifier that takes the mean all real tokens alike."""
    stack = trace.stacks[-1]
    level = trace.n_layers(stack)
    if not trace.checkpoint.config.n_classes:
        return {Node(stack, level, row): 1.0}
    if not hasattr(trace.checkpoint.model.classifier, "dense"):
        real = [token.index for token in trace.source if token.role != "pad"]
        return {Node(stack, level, token): 1 / len(real) for token in real}
    return {Node(stack, level, 0): 1.0}


def information_flow(trace: Trace, start: Mapping[Node, float], *, threshold: float = 0.05) -> Flow:
    """Follow all edges of at least ``threshold`` from ``start`` back to the embeddings. Edges of several heads between
    the same two nodes count together. Raises ``MessageError`` for a layer whose sum is not of this kind."""
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}; it must lie above 0, up to 1")
    weights, kept, mixed = dict(start), [], {}
    for stack in ("decoder", "encoder"):
        for level in range(trace.n_layers(stack), 0, -1):
            for node in sorted(node for node in weights if (node.stack, node.level) == (stack, level)):
                edges, mixed[node] = edges_into(trace, node)
                together: dict[Node, float] = {}
                for edge in edges:
                    together[edge.source] = together.get(edge.source, 0.0) + edge.share
                for edge in edges:
                    if together[edge.source] >= threshold:
                        kept.append(edge)
                        weights[edge.source] = weights.get(edge.source, 0.0) + weights[node] * edge.share
    return Flow(start, threshold, tuple(kept), weights, mixed)


def edges_into(trace: Trace, node: Node) -> tuple[list[Edge], float]:
    """All edges into one node, whose shares sum to 1, and the share of the feed-forward layer at it."""
    stack, layer, token = node.stack, node.level - 1, node.token
    name = f"{stack}.layers.{layer}"
    if f"{name}.{CONVOLUTION}" in trace:
        raise MessageError(
            "Layer {layer} of this model has a convolution beside it, which mixes neighbours without a head: its paths "
            "are not drawn.",
            layer=layer,
        )
    module = trace.checkpoint.model.get_submodule(name)
    parallel, post = isinstance(module, ParallelLayer), not module.pre_norm
    before = trace.values(f"{name}.residual.in")[token]
    extra = {"feed_forward": trace.values(f"{name}.feed_forward.output")[token]} if parallel else {}
    after = "out" if parallel else "after_self_attention"
    own, heads = _shares(trace, name, "self", token, before, after=after, post=post, extra=extra)
    edges = [Edge(Node(stack, layer, token), node, kind, -1, share) for kind, share in own.items()]
    edges += _head_edges(node, Node(stack, layer, 0), "self", heads)
    if f"{name}.cross_attention.weights" in trace:
        middle = trace.values(f"{name}.residual.after_self_attention")[token]
        own, heads = _shares(trace, name, "cross", token, middle, after="after_cross_attention", post=post, extra={})
        edges = [edge._replace(share=edge.share * own["residual"]) for edge in edges]
        edges += _head_edges(node, Node("encoder", trace.n_layers("encoder"), 0), "cross", heads)
    return edges, own["feed_forward"] if parallel else _feed_forward(trace, name, token, post=post)


def _head_edges(node: Node, source: Node, kind: str, shares: np.ndarray) -> list[Edge]:
    """``shares`` [head, key]."""
    places = zip(*np.nonzero(shares), strict=True)
    return [Edge(source._replace(token=int(k)), node, kind, int(h), float(shares[h, k])) for h, k in places]


def _shares(
    trace: Trace, name: str, kind: str, token: int, before: np.ndarray, *, after: str, post: bool,
    extra: dict[str, np.ndarray],
) -> tuple[dict[str, float], np.ndarray]:  # fmt: skip
    """Of one attention at one token: the shares of the residual and of ``extra``, and of every head and key."""
    attention = f"{name}.{kind}_attention"
    stack, layer = name.split(".")[0], int(name.rsplit(".", 1)[1])
    matrices, bias = output_matrices(trace.checkpoint, stack, layer, kind)
    weighted = trace.values(f"{attention}.weights")[:, token, :, None] * trace.values(f"{attention}.value")
    terms = weighted @ matrices  # [head, key, model]
    constant = np.zeros_like(before) if bias is None else bias
    if f"{attention}_output_norm.output" in trace:
        terms, constant = _through_norm(trace, f"{attention}_output_norm", token, terms, constant)
    whole = trace.values(f"{attention}_norm.input" if post else f"{name}.residual.{after}")[token]
    added = before + sum(extra.values()) + terms.sum(axis=(0, 1)) + constant
    if np.abs(added - whole).max() > _TOLERANCE * max(1.0, float(np.abs(whole).max())):
        raise MessageError(
            "What layer {layer} adds up is more than heads and residual: its paths are not drawn.", layer=layer
        )
    alone = {"residual": before, **extra}
    near = {what: float(_proximity(term, whole)) for what, term in alone.items()}
    of_heads = _proximity(terms, whole)  # [head, key]
    total = sum(near.values()) + float(of_heads.sum())
    if not total:  # nothing comes nearer to the sum: it is what it was
        return {**dict.fromkeys(near, 0.0), "residual": 1.0}, np.zeros_like(of_heads)
    return {what: share / total for what, share in near.items()}, of_heads / total


def _through_norm(
    trace: Trace, norm: str, token: int, terms: np.ndarray, constant: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What a norm with its σ held fixed makes of the terms of its input and of their constant; β joins the constant."""
    module = trace.checkpoint.model.get_submodule(norm)
    gain = module.weight.detach().cpu().numpy()
    if f"{norm}.std" in trace:
        scale, shift = gain / trace.values(f"{norm}.std")[token], module.bias.detach().cpu().numpy()
        return (terms - terms.mean(-1, keepdims=True)) * scale, (constant - constant.mean()) * scale + shift
    scale = gain / np.sqrt(trace.values(f"{norm}.mean_square")[token] + module.epsilon)
    return terms * scale, constant * scale


def _feed_forward(trace: Trace, name: str, token: int, *, post: bool) -> float:
    """Its share of the sum behind it, beside what was there before."""
    behind = f"{name}.feed_forward_output_norm.output"
    written = trace.values(behind if behind in trace else f"{name}.feed_forward.output")[token]
    crossed = f"{name}.residual.after_cross_attention"
    before = trace.values(crossed if crossed in trace else f"{name}.residual.after_self_attention")[token]
    near = _proximity(np.stack((before, written)), before + written)
    return float(near[1] / near.sum()) if near.sum() else 0.0


def _proximity(terms: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """max(0, ‖y‖₁ − ‖y − z‖₁) of terms [..., model]."""
    return np.maximum(0.0, np.abs(whole).sum() - np.abs(whole - terms).sum(axis=-1))
