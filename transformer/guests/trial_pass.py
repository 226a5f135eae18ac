"""A pass over a few tokens that records each module's input and output, to infer the structure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.errors import CheckpointError
from transformer.guests.attention_function import AttentionCall, trial_calls

N_SOURCE = 7  # tokens of the pass that finds the structure; a decoder beside an encoder reads one token less
TOLERANCE = 1e-4  # of the largest number, for numbers whose sums have another order
_LONG, _LONGEST_BLOCK = 33, 512  # tokens of the other pass, at least; blocks of sparse attention that it exceeds


@dataclass(frozen=True, eq=False)
class Event:
    """One call of a module. ``started`` and ``ended`` count the beginnings and ends of all calls."""

    name: str
    module: nn.Module
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    started: int
    ended: int

    @property
    def input(self) -> Tensor:
        """The first tensor that the module received."""
        return self.inputs[0]

    @property
    def output(self) -> Tensor:
        """The first tensor that the module returned."""
        return self.outputs[0]

    def shaped_like(self, stream: Tensor) -> Event:
        """Return the same call, its tensors with one row per position reshaped to [batch, position, …]."""
        rows = stream.shape[0] * stream.shape[1]

        def shaped(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            first = tensors[0] if tensors else stream
            if first.ndim != 2 or len(first) != rows:
                return tensors
            return (first.reshape(*stream.shape[:2], -1), *tensors[1:])

        return replace(self, inputs=shaped(self.inputs), outputs=shaped(self.outputs))

    def within(self, other: Event) -> bool:
        """Return whether this call was made by ``other``."""
        return other.started < self.started and self.ended < other.ended

    @property
    def is_norm(self) -> bool:
        """Return whether the module is a norm, by its name."""
        return "norm" in type(self.module).__name__.lower() and not any(True for _ in self.module.children())

    @property
    def is_linear(self) -> bool:
        """Return whether the module is a linear layer."""
        return isinstance(self.module, nn.Linear) or type(self.module).__name__.endswith("Conv1D")


@dataclass
class Trial:
    """All module calls of one pass, in the order in which they began, and its attention calls."""

    events: list[Event] = field(default_factory=list)
    calls: list[AttentionCall] = field(default_factory=list)
    logits: Tensor | None = None
    overwritten: set[int] = field(default_factory=set)  # ids of modules whose output is later changed in place
    kinds: dict[int, type] = field(default_factory=dict)  # id of a module → the class of its output

    def inside(self, event: Event) -> list[Event]:
        """Return the calls that ``event`` made."""
        return [each for each in self.events if each.within(event)]

    def call_of(self, event: Event) -> AttentionCall | None:
        """Return the call of the attention function by ``event``; None unless its module always makes one."""
        calls = [call for call in self.calls if call.module is event.module]
        starts = [each.started for each in self.events if each.module is event.module]
        return calls[starts.index(event.started)] if len(calls) == len(starts) else None


def trial_inputs(config: Any, network: Any) -> list[dict[str, Tensor]]:
    """Return the inputs of the trial passes: an image, or a short and a long text of random tokens."""
    generator = torch.Generator().manual_seed(0)
    if config.image is not None:
        return [{"pixel_values": torch.randn(1, 3, *config.image.preprocessing.shape, generator=generator)}]
    last = config.vocabulary_size - 1
    first = min(5, last)

    def drawn(count: int) -> Tensor:
        ids = torch.randint(first, last + 1, (1, max(1, count)), generator=generator)
        return torch.where(
            ids == (-1 if config.pad_id is None else config.pad_id), last if config.pad_id == first else first, ids
        )

    found = []
    for length in (min(N_SOURCE, config.max_length), longest_trial(config, network.config)):
        ids = drawn(length)
        found.append({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
        if config.kind == "encoder-decoder":  # another length, so that cross-attention can be recognised
            found[-1]["decoder_input_ids"] = drawn(length - 1)
    return found


def longest_trial(config: Any, theirs: Any) -> int:
    """Return the length of the longest trial pass, which exceeds the blocks of a block-sparse attention."""
    blocks = (value for name, value in theirs.to_dict().items() if "block_size" in name and isinstance(value, int))
    longest = max((block for block in blocks if block <= _LONGEST_BLOCK), default=0)
    return int(min(config.max_length, max(_LONG, longest + 1)))


def trial_pass(network: Any, inputs: Mapping[str, Tensor]) -> Trial:
    """Run ``network`` once on ``inputs`` and record the input and output of each of its modules.

    Raises:
        CheckpointError: If the network's own code fails, or the pass replaces modules of the network (BigBird's, for a
            short text), so that what it computes depends on the texts that it has read.
    """
    found, clock = Trial(), iter(range(10**9))
    begun: list[tuple[tuple[Tensor, ...], int]] = []
    live: list[tuple[nn.Module, Any, Tensor]] = []

    def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
        begun.append((tuple(tensor.clone() for tensor in _tensors((args, kwargs))), next(clock)))

    def leave(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        given, started = begun.pop()
        outputs = tuple(_tensors(output))
        found.kinds[id(module)] = type(output)
        if outputs:
            live.append((module, output, outputs[0].clone()))
            copies = tuple(tensor.clone() for tensor in outputs)
            found.events.append(Event(names[id(module)], module, given, copies, started, next(clock)))

    names = {id(module): name for name, module in network.named_modules()}
    with ExitStack() as stack, torch.inference_mode(), trial_calls(found.calls):
        for module in network.modules():
            handles = (
                module.register_forward_pre_hook(enter, with_kwargs=True),
                module.register_forward_hook(leave, with_kwargs=True),
            )
            for handle in handles:
                stack.callback(handle.remove)
        try:
            output = network(**inputs)
        except Exception as error:
            raise CheckpointError(
                f"model_type {repr(network.config.model_type)[:80]} cannot be shown: {type(network).__name__} fails in "
                f"a trial pass on {next(iter(inputs))} alone. Open a checkpoint of another type; docs/guests.md lists "
                f"some. The message of transformers: {repr(str(error))[:300]}"
            ) from error
    if [*names] != [id(module) for module in network.modules()]:
        raise CheckpointError(
            f"{type(network).__name__} replaces its attention by another kind for short texts, so what it computes "
            "depends on the texts that it has read before"
        )
    found.logits = output.get("logits")
    found.overwritten = {id(module) for module, output, copy in live if not same(next(_tensors(output)), copy)}
    found.events.sort(key=lambda event: event.started)
    return found


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)


def same(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are bitwise equal."""
    return one is other or (one.shape == other.shape and torch.equal(one, other))


def close(one: Tensor, other: Tensor, tolerance: float = 2e-5) -> bool:
    """Return whether two tensors differ by rounding only: less than ``tolerance`` of the largest number."""
    if one.shape != other.shape:
        return False
    size = float(one.detach().abs().max()) + 1e-30
    return float((one - other).detach().abs().max()) < tolerance * size
