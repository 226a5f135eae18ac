"""Number and values of a model's parameters, by block and part."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from transformer.layer_norm import LayerNorm, RMSNorm
from transformer.models import Model

REST = "other parts"
_SUBLAYERS = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward",
}


@dataclass(frozen=True)
class Cost:
    """Number of trained ``parameters`` in one part of one block.

    A shared matrix counts where it is first used.
    """

    block: str
    part: str
    parameters: int


def parameter_costs(model: Model) -> tuple[Cost, ...]:
    """Return the number of trained parameters by block and part, in the order of the forward pass."""
    parts = list(_parts(model))
    named = {id(module) for _, _, module in parts}
    counted: set[int] = set()
    costs = []
    for block, part, module in parts:
        inner = [child for child in module.modules() if child is not module and id(child) in named]
        theirs = {id(p) for child in inner for p in child.parameters()}
        own = {id(p): p.numel() for p in module.parameters() if id(p) not in theirs | counted}
        counted |= own.keys()
        costs.append(Cost(block, part, sum(own.values())))
    return _merge_costs(costs)


def _parts(model: Model) -> Iterator[tuple[str, str, nn.Module]]:
    """Yield (block, part, module) in the order of the forward pass; a part may be nested in another.

    Each module comes once: encoder and decoder may share their table, but each has its own ``Embedding`` around it.
    """
    for name in ("encoder", "decoder"):
        stack = getattr(model, name, None)
        if stack is None:
            continue
        yield f"{name} embedding", "embedding", stack.embedding
        for encoding in (stack.embedding.position_encoding, stack.position_bias):
            if encoding is not None:
                yield f"{name} embedding", "positions", encoding
        for index, layer in enumerate(stack.layers):
            block = f"{name} layer {index}"
            for sublayer in _SUBLAYERS:
                if getattr(layer, sublayer, None) is not None:
                    yield block, _SUBLAYERS[sublayer], getattr(layer, sublayer)
            for child in layer.children():
                if isinstance(child, LayerNorm | RMSNorm):
                    yield block, type(child).__name__, child
            yield block, REST, layer
        if stack.final_norm is not None:
            yield f"{name} final norm", type(stack.final_norm).__name__, stack.final_norm
        if getattr(stack, "vocabulary_projection", None) is not None:
            yield "projection", "projection", stack.vocabulary_projection
    if getattr(model, "classifier", None) is not None:
        yield "classifier", "projection", model.classifier
    if getattr(model, "next_sentence", None) is not None:
        yield "next-sentence head", "next-sentence head", model.next_sentence
    yield "everything else", REST, model


def _merge_costs(costs: list[Cost]) -> tuple[Cost, ...]:
    """Merge costs into one entry per (block, part), in the order of their first appearance."""
    sums: Counter[tuple[str, str]] = Counter()
    for cost in costs:
        sums[cost.block, cost.part] += cost.parameters
    order = list(dict.fromkeys(block for block, _ in sums))
    return tuple(Cost(*key, sums[key]) for key in sorted(sums, key=lambda key: order.index(key[0])))


@dataclass(frozen=True)
class ParameterStatistics:
    """Statistics of one trained tensor.

    ``std`` is the biased standard deviation, ``largest`` the largest absolute value.
    """

    name: str
    shape: tuple[int, ...]
    numbers: int
    mean: float
    std: float
    largest: float


@torch.inference_mode()
def parameter_statistics(model: Model) -> list[ParameterStatistics]:
    """Return statistics of every parameter in the order of the modules; a tied matrix has its first name."""
    found = []
    for name, parameter in model.named_parameters():
        values = parameter.float()  # sums in half precision would be off by a percent
        found.append(
            ParameterStatistics(
                name=name,
                shape=tuple(values.shape),
                numbers=values.numel(),
                mean=float(values.mean()),
                std=float(values.std(correction=0)),
                largest=float(values.abs().max()),
            )
        )
    return found
