"""Information flow routes (Ferrando & Voita 2024): the edges that produced a prediction.

A node is one token after one layer. Its vector is a sum: the token's vector before the layer, and what every head added
from every token that it attended to. The share of a term z in the sum y is given by its proximity

    p(z) = max(0, ‖y‖₁ − ‖y − z‖₁),        share(z) = p(z) / Σ p

(§2.2; Ferrando et al. 2022), and the shares of all edges into a node sum to 1. b_O comes from no token, so it has none.
The feed-forward layer mixes no tokens: its share is stored at the node. If attention and feed-forward layer read the
same residual stream (parallel blocks), its term is one more edge from the same token. A norm after a sub-layer is held
fixed, so that it is linear; with post-norm the sum is taken before the norm.
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

_TOLERANCE = 1e-3  # relative to the largest number of the sum


class Node(NamedTuple):
    """One ``token`` of ``stack`` after ``level`` layers; level 0 is the embedding."""

    stack: str
    level: int
    token: int


class Edge(NamedTuple):
    """Share of the vector at ``target`` that came from ``source``.

    It came through one ``head`` of ``kind`` "self" or "cross" in the layer of the target, or through ``kind``
    "residual" or "feed_forward" (head −1).
    """

    source: Node
    target: Node
    kind: str
    head: int
    share: float


@dataclass(frozen=True)
class Flow:
    """Edges with at least the share ``threshold`` that lead to the prediction.

    Attributes:
        weights: For every node reached, how much of the prediction passes through it: the sum over the edges above it
            of their weight × share; the prediction has 1.
        feed_forward: Share of the feed-forward layer at each node.
    """

    start: Mapping[Node, float]
    threshold: float
    edges: tuple[Edge, ...]
    weights: Mapping[Node, float]
    feed_forward: Mapping[Node, float]


def start_of(trace: Trace, row: int) -> dict[Node, float]:
    """Return where the prediction is read: one position, or all real tokens in a classifier."""
    stack = trace.stacks[-1]
    level = trace.n_layers(stack)
    if not trace.checkpoint.config.n_classes:
        return {Node(stack, level, row): 1.0}
    if not hasattr(trace.checkpoint.model.classifier, "dense"):
        real = [token.index for token in trace.source if token.role != "pad"]
        return {Node(stack, level, token): 1 / len(real) for token in real}
    return {Node(stack, level, 0): 1.0}


def information_flow(trace: Trace, start: Mapping[Node, float], *, threshold: float = 0.05) -> Flow:
    """Follow all edges of at least ``threshold`` from ``start`` back to the embeddings.

    Edges of several heads between the same two nodes are added.

    Raises:
        MessageError: If the sum of a layer is not of this kind.
    """
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
    """Return all edges into one node, whose shares sum to 1, and the share of its feed-forward layer."""
    stack, layer, token = node.stack, node.level - 1, node.token
    name = f"{stack}.layers.{layer}"
    if f"{name}.{CONVOLUTION}" in trace:
        raise MessageError(
            "A convolution runs in parallel to layer {layer} of this model and mixes neighbouring tokens without "
            "heads: its paths are not drawn.",
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
    """Return the edges of all heads from ``source``; ``shares`` is [head, key]."""
    places = zip(*np.nonzero(shares), strict=True)
    return [Edge(source._replace(token=int(k)), node, kind, int(h), float(shares[h, k])) for h, k in places]


def _shares(
    trace: Trace, name: str, kind: str, token: int, before: np.ndarray, *, after: str, post: bool,
    extra: dict[str, np.ndarray],
) -> tuple[dict[str, float], np.ndarray]:  # fmt: skip
    """Return the shares of the residual and ``extra``, and of each head and key, at one token."""
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
            "Layer {layer} adds more than the outputs of heads and the residual: its paths are not drawn.", layer=layer
        )
    alone = {"residual": before, **extra}
    near = {what: float(_proximity(term, whole)) for what, term in alone.items()}
    of_heads = _proximity(terms, whole)  # [head, key]
    total = sum(near.values()) + float(of_heads.sum())
    if not total:  # no term is closer to the sum: the vector comes from the residual
        return {**dict.fromkeys(near, 0.0), "residual": 1.0}, np.zeros_like(of_heads)
    return {what: share / total for what, share in near.items()}, of_heads / total


def _through_norm(
    trace: Trace, norm: str, token: int, terms: np.ndarray, constant: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Carry terms of a norm's input and their constant through the norm, σ fixed; β joins the constant."""
    module = trace.checkpoint.model.get_submodule(norm)
    gain = module.weight.detach().cpu().numpy()
    if f"{norm}.std" in trace:
        scale, shift = gain / trace.values(f"{norm}.std")[token], module.bias.detach().cpu().numpy()
        return (terms - terms.mean(-1, keepdims=True)) * scale, (constant - constant.mean()) * scale + shift
    scale = gain / np.sqrt(trace.values(f"{norm}.mean_square")[token] + module.epsilon)
    return terms * scale, constant * scale


def _feed_forward(trace: Trace, name: str, token: int, *, post: bool) -> float:
    """Return the share of the feed-forward layer in the sum after it."""
    behind = f"{name}.feed_forward_output_norm.output"
    written = trace.values(behind if behind in trace else f"{name}.feed_forward.output")[token]
    crossed = f"{name}.residual.after_cross_attention"
    before = trace.values(crossed if crossed in trace else f"{name}.residual.after_self_attention")[token]
    near = _proximity(np.stack((before, written)), before + written)
    return float(near[1] / near.sum()) if near.sum() else 0.0


def _proximity(terms: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return max(0, ‖y‖₁ − ‖y − z‖₁) for terms z, [..., model]."""
    return np.maximum(0.0, np.abs(whole).sum() - np.abs(whole - terms).sum(axis=-1))
