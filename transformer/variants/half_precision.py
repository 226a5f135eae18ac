"""Matrices that keep the two bytes per number of their file, and are widened to float32 in use.

Every float16 and bfloat16 number is also a float32 number, so the layers compute what they would compute with float32
weights. Rows are widened a block at a time, into memory that stays in the cache of a processor. In one thread, as in
the app, that is as fast as reading a float32 matrix; several threads wait for each other after every block.
"""

import threading

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.variants.output_heads import ScaledProjection

HALF_TYPES = (torch.float16, torch.bfloat16)
KEPT_HALF_FROM = 500_000_000  # weights; 2 GB as float32
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


def _widen_block(block: Tensor) -> Tensor:
    """Return a block in float32; the next call of the same thread overwrites it."""
    memory = getattr(_scratch, "memory", None)
    if memory is None or memory.numel() < block.numel() or memory.device != block.device:
        memory = _scratch.memory = torch.empty(max(_BLOCK, block.numel()), device=block.device)
    return memory[: block.numel()].view(block.shape).copy_(block)


_CLASSES = {
    nn.Linear: HalfPrecisionLinear,
    ScaledProjection: HalfPrecisionProjection,
    nn.Embedding: HalfPrecisionEmbedding,
}


def saves_memory(n_weights: int) -> bool:
    """Whether so many weights stay in half precision; in a small model, speed matters more."""
    return n_weights >= KEPT_HALF_FROM


def can_be_half(module: nn.Module) -> bool:
    """Whether there is a half-precision form of this layer."""
    return type(module) in _CLASSES or isinstance(module, _HalfPrecision)


def keep_half(module: nn.Module) -> None:
    """Let a layer whose ``weight`` was assigned in half precision widen it whenever it is used."""
    module.__class__ = _CLASSES.get(type(module), type(module))


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
