"""Number, values and time of a model's parameters: where they are, and how long each part takes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import torch
from torch import nn

from transformer.layer_norm import LayerNorm, RMSNorm
from transformer.models import Model
from transformer.runs.traces import Trace

REST = "adding, masks"
_STACKS = {"encoder": "encoder", "decoder": "decoder"}
_SUBLAYERS = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward",
}


@dataclass(frozen=True)
class Cost:
    """Cost of one part of one block.

    Attributes:
        parameters: Number of trained parameters; a shared matrix counts where it is first used.
        milliseconds: Time of the part in one pass, without its inner parts; ``None`` if it was not measured.
    """

    block: str
    part: str
    parameters: int
    milliseconds: float | None = None


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


def measured_costs(trace: Trace, *, repeats: int = 7) -> tuple[Cost, ...]:
    """Return ``parameter_costs`` with the time that each part takes in one pass over ``trace``.

    The time is the median over ``repeats`` passes after one warm-up, on a copy of the model that shares its weights, so
    that other threads are not disturbed. Forward hooks read the clock before and after each part; the time of nested
    parts is counted once, with the inner part. Generating an output takes many such passes.
    """
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; measure at least one pass")
    model = trace.checkpoint.model.copy_sharing_weights()
    parts = list(_parts(model))
    clock = _Clock()
    for index, (_, _, module) in enumerate(parts):
        clock.attach(module, index)
    inputs = [torch.tensor([sequence.ids]) for sequence in (trace.source, trace.target) if sequence is not None]
    runs: list[dict[int, float]] = []
    with torch.inference_mode():
        for _ in range(repeats + 1):
            clock.times.clear()
            model(*inputs)
            runs.append(dict(clock.times))
    times = [
        Cost(block, part, 0, 1000 * median(run.get(index, 0.0) for run in runs[1:]))
        for index, (block, part, _) in enumerate(parts)
    ]
    return _merge_costs([*parameter_costs(model), *times])


class _Clock:
    """Timer for nested modules: a part's clock stops while an inner part runs."""

    def __init__(self) -> None:
        self.times: dict[int, float] = {}
        self._running: list[tuple[int, float]] = []  # (index, time since which it has been running)

    def attach(self, module: nn.Module, index: int) -> None:
        """Time ``module`` as part ``index``."""
        module.register_forward_pre_hook(lambda *_: self._enter(index))
        module.register_forward_hook(lambda *_: self._leave())

    def _enter(self, index: int) -> None:
        now = time.perf_counter()
        if self._running:
            self._add(now)
        self._running.append((index, now))

    def _leave(self) -> None:
        now = time.perf_counter()
        self._add(now)
        self._running.pop()
        if self._running:
            self._running[-1] = (self._running[-1][0], now)

    def _add(self, now: float) -> None:
        index, since = self._running[-1]
        self.times[index] = self.times.get(index, 0.0) + now - since


def _parts(model: Model) -> Iterator[tuple[str, str, nn.Module]]:
    """Yield (block, part, module) in the order of the forward pass; a part may be nested in another.

    Each module comes once: encoder and decoder may share their table, but each has its own ``Embedding`` around it.
    """
    for name in ("encoder", "decoder"):
        stack = getattr(model, name, None)
        if stack is None:
            continue
        yield f"{_STACKS[name]} embedding", "embedding", stack.embedding
        for encoding in (stack.embedding.position_encoding, stack.position_bias):
            if encoding is not None:
                yield f"{_STACKS[name]} embedding", "positions", encoding
        for index, layer in enumerate(stack.layers):
            block = f"{_STACKS[name]} layer {index}"
            for sublayer in _SUBLAYERS:
                if getattr(layer, sublayer, None) is not None:
                    yield block, _SUBLAYERS[sublayer], getattr(layer, sublayer)
            for child in layer.children():
                if isinstance(child, nn.Conv1d):
                    yield block, "convolution", child
                elif isinstance(child, LayerNorm | RMSNorm):
                    yield block, type(child).__name__, child
            yield block, REST, layer
        if (relative := getattr(stack, "relative_embedding", None)) is not None:
            yield f"{_STACKS[name]} embedding", "positions", relative
        if stack.final_norm is not None:
            yield f"{_STACKS[name]} final norm", type(stack.final_norm).__name__, stack.final_norm
        if getattr(stack, "vocabulary_projection", None) is not None:
            yield "projection", "projection", stack.vocabulary_projection
    if getattr(model, "classifier", None) is not None:
        yield "classifier", "projection", model.classifier
    if getattr(model, "next_sentence", None) is not None:
        yield "next-sentence head", "next-sentence head", model.next_sentence
    yield "everything else", REST, model


def _merge_costs(costs: list[Cost]) -> tuple[Cost, ...]:
    """Merge costs into one entry per (block, part), in the order of their first appearance."""
    sums: dict[tuple[str, str], Cost] = {}
    for cost in costs:
        key = (cost.block, cost.part)
        before = sums.get(key)
        if before is None:
            sums[key] = cost
            continue
        measured = [c.milliseconds for c in (before, cost) if c.milliseconds is not None]
        sums[key] = Cost(*key, before.parameters + cost.parameters, sum(measured) if measured else None)
    order = list(dict.fromkeys(block for block, _ in sums))
    return tuple(sorted(sums.values(), key=lambda cost: order.index(cost.block)))


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
