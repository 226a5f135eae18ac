"""Matrices that keep the two bytes per number of their file, and are widened to float32 in use.

``transformers`` builds a network in float32, so that norms and tables that it computes are exact. Meanwhile, the
matrices of linear layers and embeddings are placeholders of a few numbers, which it passes on without a copy. Then each
gets its stored numbers, and its layer widens them while it computes.

Every float16 and bfloat16 number is also a float32 number, so the layers compute what they would compute with float32
weights. Rows are widened a block at a time, into memory that stays in the cache of a processor. In one thread, as in
the app, this is as fast as reading a float32 matrix; several threads would wait for each other after every block.
"""

import threading
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.guests.output_heads import ScaledProjection

HALF_TYPES = (torch.float16, torch.bfloat16)
KEPT_HALF_FROM = 500_000_000  # weights; 2 GB as float32. In a smaller model, speed matters more
_BLOCK = 2**20  # numbers that are widened at a time: 4 MB
_scratch = threading.local()


class _HalfPrecision(nn.Module):
    """A layer with ``weight`` stored in half precision. Whoever reads ``weight`` gets float32."""

    def __getattr__(self, name: str) -> Tensor | nn.Module:
        value = super().__getattr__(name)
        return value.float() if name == "weight" else value

    @property
    def stored(self) -> nn.Parameter:
        """The weights as they are stored."""
        return self._parameters["weight"]


class HalfPrecisionLinear(_HalfPrecision, nn.Linear):
    """x Wᵀ + b, a block of rows of W at a time."""

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., input] to [..., output]."""
        if not torch.is_inference_mode_enabled():  # a backward pass would find the last block in the scratch memory
            return F.linear(x, self.weight, self.bias)
        blocks = self.stored.split(max(1, _BLOCK // self.in_features))
        product = torch.cat([F.linear(x, _widen_block(block)) for block in blocks], dim=-1)
        return product if self.bias is None else product + self.bias


class HalfPrecisionProjection(ScaledProjection, HalfPrecisionLinear):
    """The projection onto the vocabulary."""


class HalfPrecisionEmbedding(_HalfPrecision, nn.Embedding):
    """An embedding table of which only the rows that are looked up are widened."""

    def forward(self, ids: Tensor) -> Tensor:
        """Look up ids [...] as [..., model]."""
        return F.embedding(ids, self.stored).float()


class HalfPrecisionConv1D(_HalfPrecision):
    """GPT-2's linear layer x W + b, whose matrix is [input, output]."""

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., input] to [..., output]."""
        if not torch.is_inference_mode_enabled():
            return x @ self.weight + self.bias
        start, product = 0, self.bias.expand(*x.shape[:-1], -1)
        for block in self.stored.split(max(1, _BLOCK // self.stored.shape[1])):  # rows of W: parts of the sum
            product = product + x[..., start : start + len(block)] @ _widen_block(block)
            start += len(block)
        return product


def _widen_block(block: Tensor) -> Tensor:
    """Return a block in float32; the next call of the same thread overwrites it."""
    memory = getattr(_scratch, "memory", None)
    if memory is None or memory.numel() < block.numel() or memory.device != block.device:
        memory = _scratch.memory = torch.empty(max(_BLOCK, block.numel()), device=block.device)
    return memory[: block.numel()].view(block.shape).copy_(block)


_CLASSES: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: HalfPrecisionLinear,
    ScaledProjection: HalfPrecisionProjection,
    nn.Embedding: HalfPrecisionEmbedding,
}


def can_be_half(module: nn.Module) -> bool:
    """Return whether there is a half-precision form of this layer."""
    if type(module).__name__ == "Conv1D":  # of ``transformers``, which is not imported for our own models
        _CLASSES.setdefault(type(module), HalfPrecisionConv1D)
    return type(module) in _CLASSES or isinstance(module, _HalfPrecision)


def keep_half(module: nn.Module) -> None:
    """Let a layer whose ``weight`` was assigned in half precision widen it whenever it is used."""
    module.__class__ = _CLASSES.get(type(module), type(module))


def kept_half(network: nn.Module, stored: Mapping[str, tuple[int, ...]]) -> frozenset[str]:
    """Return the names of the matrices that stay in half precision: none in a small model.

    Args:
        network: The network on the meta device.
        stored: The shapes of the tensors that are stored in half precision, by their names.
    """
    matrices = {f"{name}.weight" for name, module in network.named_modules() if can_be_half(module)}
    front = f"{getattr(network, 'base_model_prefix', '')}."
    found = {name for name in stored if not matrices.isdisjoint((name, front + name, name.removeprefix(front)))}
    return frozenset(found if sum(prod(stored[name]) for name in found) >= KEPT_HALF_FROM else ())


def placeholder(shape: tuple[int, ...]) -> Tensor:
    """Return zeros, [row, column], in 2 · rows + columns numbers; the strides reveal a transposition."""
    rows, columns = shape
    return torch.zeros(2 * rows + columns).as_strided((rows, columns), (2, 1))


def fill_placeholders(network: nn.Module, placeholders: Mapping[str, Tensor], halves: Mapping[str, Tensor]) -> bool:
    """Give each layer its stored matrix, and return whether the network has every placeholder unchanged."""
    names = {matrix.data_ptr(): name for name, matrix in placeholders.items()}
    found = {name: (parameter, users) for parameter, users in modules_of_parameters(network).items()
             if (name := names.get(parameter.data_ptr())) is not None}  # fmt: skip
    if found.keys() != placeholders.keys() or any(each.stride() != (2, 1) for each, _ in found.values()):
        return False
    for name, (parameter, users) in found.items():
        half = all(part == "weight" and can_be_half(module) for module, part in users)
        matrix = nn.Parameter(halves[name] if half else halves[name].float(), parameter.requires_grad)
        for module, part in users:
            setattr(module, part, matrix)
            if half:
                keep_half(module)
    return True


def modules_of_parameters(model: nn.Module) -> dict[nn.Parameter, list[tuple[nn.Module, str]]]:
    """Return where each parameter is used: a tied matrix is used in several modules."""
    places: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {}
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            places.setdefault(parameter, []).append((module, name))
    return places


def widen(model: nn.Module) -> nn.Module:
    """Return the same model with float32 weights in all layers, e.g. to train it."""
    wide: dict[nn.Parameter, nn.Parameter] = {}  # a tied matrix stays one
    for module in model.modules():
        if isinstance(module, _HalfPrecision):
            stored = module.stored
            if stored not in wide:
                wide[stored] = nn.Parameter(stored.detach().float(), requires_grad=stored.requires_grad)
            module.weight = wide[stored]
            module.__class__ = next(plain for plain, half in _CLASSES.items() if type(module) is half)
    return model


class HeldBytes(NamedTuple):
    """Bytes of all weights as ``held`` and as float32 (``wide``); ``type`` is the type of the matrices."""

    type: str
    held: int
    wide: int


def held_in_half_precision(model: nn.Module) -> HeldBytes | None:
    """Return how much memory a model takes; ``None`` if no matrix is in half precision."""
    parameters = list(model.parameters())
    half = next((parameter.dtype for parameter in parameters if parameter.dtype in HALF_TYPES), None)
    if half is None:
        return None
    held = sum(parameter.nbytes for parameter in parameters)
    return HeldBytes(str(half).removeprefix("torch."), held, 4 * sum(parameter.numel() for parameter in parameters))
