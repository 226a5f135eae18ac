"""Number and values of a model's parameters, by part."""

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


def parameter_costs(model: Model) -> Counter[str]:
    """Return the trained parameters of each kind of part; a shared matrix counts at its first use."""
    costs: Counter[str] = Counter()
    counted: set[int] = set()
    for part, module in _parts(model):
        own = {id(parameter): parameter.numel() for parameter in module.parameters() if id(parameter) not in counted}
        counted |= own.keys()
        costs[part] += sum(own.values())
    return costs


def shares_of_parts(model: Model) -> dict[str, float]:
    """Return the share of all parameters that each kind of part has, from 0 to 1, the largest first."""
    costs = parameter_costs(model)
    return {part: count / costs.total() for part, count in costs.most_common() if count}


def _parts(model: Model) -> Iterator[tuple[str, nn.Module]]:
    """Yield (part, module) in the order of the forward pass, each part before the module that contains it."""
    for name in ("encoder", "decoder"):
        stack = getattr(model, name, None)
        if stack is None:
            continue
        for encoding in (stack.embedding.position_encoding, stack.position_bias):
            if encoding is not None:
                yield "positions", encoding
        yield "embedding", stack.embedding
        for layer in stack.layers:
            for sublayer, part in _SUBLAYERS.items():
                if getattr(layer, sublayer, None) is not None:
                    yield part, getattr(layer, sublayer)
            for child in layer.children():
                if isinstance(child, LayerNorm | RMSNorm):
                    yield type(child).__name__, child
            yield REST, layer
        if stack.final_norm is not None:
            yield type(stack.final_norm).__name__, stack.final_norm
        if getattr(stack, "vocabulary_projection", None) is not None:
            yield "projection", stack.vocabulary_projection
    if getattr(model, "classifier", None) is not None:
        yield "projection", model.classifier
    if getattr(model, "next_sentence", None) is not None:
        yield "next-sentence head", model.next_sentence
    yield REST, model


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
