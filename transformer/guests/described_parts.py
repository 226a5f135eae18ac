"""A guest described by our layers: the same names, probes and matrices, while its own code computes.

Every part that ``structure`` found appears where our layers have it and shares its memory. A part that was not found
is a ``NotExposed``, whose error message explains what is missing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.errors import NotExposedError
from transformer.guests.described_layers import HalvedSinusoids
from transformer.guests.half_precision import HalfPrecisionLinear
from transformer.guests.trial_pass import Event, close
from transformer.layer_norm import LayerNorm, RMSNorm
from transformer.positions import LearnedEncoding, RelativePositionBias, sinusoidal_encoding
from transformer.probes import Probe

Factor: TypeAlias = float | Tensor  # of all channels, or one per channel


def not_exposed(what: str) -> NotExposedError:
    """Return the error for a part that a guest does not expose."""
    return NotExposedError(f"This model is computed by the code of transformers, which does not expose {what}.")


class NotExposed(nn.Module):
    """Placeholder for a part that a guest does not expose. Any access raises ``NotExposedError``."""

    def __init__(self, what: str, **probes: Probe) -> None:
        super().__init__()
        self.__dict__["what"] = what
        for name, probe in probes.items():
            setattr(self, name, probe)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_"):
                raise
            raise not_exposed(self.__dict__["what"]) from None

    def forward(self, *_: object) -> Tensor:
        """Raise ``NotExposedError``."""
        raise not_exposed(self.__dict__["what"])


def is_one(factor: Factor) -> bool:
    """Return whether a factor changes nothing."""
    return not isinstance(factor, Tensor) and factor == 1.0


class SharedLinear(nn.Module):
    """x Wᵀ + b with rows of another linear layer's matrix, times ``factor``; the rows are read on access."""

    def __init__(self, source: nn.Module, rows: Tensor | None = None, factor: Factor = 1.0) -> None:
        super().__init__()
        self.source, self.rows, self.factor = source, rows, factor

    @property
    def weight(self) -> Tensor:
        """[output, input], as in ``nn.Linear``."""
        weight = self.source.weight if isinstance(self.source, nn.Linear) else self.source.weight.T
        return self._chosen(weight)

    @property
    def bias(self) -> Tensor | None:
        """[output], or None."""
        bias = getattr(self.source, "bias", None)
        return None if bias is None else self._chosen(bias)

    @property
    def in_features(self) -> int:
        """Width of the input."""
        return self.weight.shape[1]

    @property
    def out_features(self) -> int:
        """Width of the output."""
        return self.weight.shape[0]

    def _chosen(self, tensor: Tensor) -> Tensor:
        tensor = tensor if self.rows is None else tensor[self.rows.to(tensor.device)]
        if isinstance(self.factor, Tensor):  # one per row
            return tensor * (self.factor if tensor.ndim == 1 else self.factor[:, None])
        return tensor if self.factor == 1.0 else tensor * self.factor

    def forward(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b."""
        return F.linear(x, self.weight, self.bias)


class Rows(nn.Module):
    """Rows that a network adds to the tokens of an image, one per position, found in a trial pass."""

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        self.rows = nn.Buffer(rows, persistent=False)


class SharedPositions(nn.Module):
    """Rows of a guest's position table: [1, position, model].

    Args:
        holder: The module that has the table.
        name: The table's name there.
        offset: The row of position 0.
    """

    def __init__(self, holder: nn.Module, name: str, offset: int) -> None:
        nn.Module.__init__(self)
        self.holder, self.name, self.offset = holder, name, offset

    def forward(self, n_positions: int, start: int = 0) -> Tensor:
        """Return the rows of positions ``start`` to ``start + n_positions − 1``."""
        return getattr(self.holder, self.name)[None, self.offset + start : self.offset + start + n_positions]


class SharedLearnedPositions(SharedPositions, LearnedEncoding):
    """Rows of a guest's learned position table."""


class SharedSinusoids(SharedPositions, HalvedSinusoids):
    """Rows of a guest's table of sines, then cosines."""

    def __init__(self, holder: nn.Module, name: str, offset: int, steps: float) -> None:
        SharedPositions.__init__(self, holder, name, offset)
        self.steps = steps


def describe_rows(
    holder: nn.Module, name: str, offset: int = 0, *, trained: bool | None = None
) -> tuple[SharedPositions, str]:
    """Return the rows that a guest adds to its tokens as a module of our models, and their kind.

    Args:
        holder: The module that has the table.
        name: The table's name there.
        offset: The row of position 0.
        trained: Whether it is trained; by default, whether it has gradients.
    """
    table = getattr(holder, name)
    rows, width = table.detach()[offset : offset + 256], table.shape[-1]
    if width % 2 == 0:
        if offset == 0 and close(rows, sinusoidal_encoding(len(rows), width)):
            return SharedPositions(holder, name, offset), "sinusoidal"
        for steps in (width / 2, width / 2 - 1):
            if steps > 0 and close(rows, HalvedSinusoids(width, offset=offset, steps=steps)(len(rows))[0]):
                return SharedSinusoids(holder, name, offset, steps), "sinusoidal"
    if table.requires_grad if trained is None else trained:
        return SharedLearnedPositions(holder, name, offset), "learned"
    return SharedPositions(holder, name, offset), "unknown"


class SharedBias(RelativePositionBias):
    """A guest's table of one number per head and bucket of distances, which is added to every score.

    Args:
        source: The table, [bucket, head].
        causal: Whether only earlier tokens have buckets.
        max_distance: Distance from which all distances share one bucket.
    """

    def __init__(self, source: nn.Embedding, *, causal: bool, max_distance: int) -> None:
        nn.Module.__init__(self)
        self.source, self.causal = source, causal
        self.n_buckets, self.max_distance = source.num_embeddings, max_distance
        self.values = Probe("head", "query", "key")

    @property
    def table(self) -> Tensor:  # type: ignore[override]
        """[head, bucket]."""
        return self.source.weight.T


def is_plain_linear(module: nn.Module) -> bool:
    """Return whether a layer computes x Wᵀ + b and nothing else, its weights in float32 or half precision."""
    return type(module) in (nn.Linear, HalfPrecisionLinear)


def linear(module: nn.Module, rows: Tensor | None = None, factor: Factor = 1.0) -> nn.Module:
    """Return a guest's linear layer: the ``nn.Linear`` itself if used unchanged, otherwise a view of it."""
    if rows is None and is_one(factor) and is_plain_linear(module):
        return module
    return SharedLinear(module, rows, factor)


def find_norm(event: Event) -> nn.Module:
    """Return our norm with a guest's weights, or only the input and output of an unknown kind of norm."""
    module, x, y = event.module, event.input.float(), event.output.float()
    names = ("eps", "variance_epsilon", "epsilon")
    stored = (value for name in names if isinstance(value := getattr(module, name, None), (int, float)))
    epsilon, width = float(next(stored, 1e-5)), x.shape[-1]
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    for offset in (0.0, 1.0):  # number that is added to the stored gain
        norms: list[Any] = [LayerNorm(SimpleNamespace(layer_norm_epsilon=epsilon, d_model=width))]
        norms += [RMSNorm(width, epsilon)] if bias is None else []
        for norm in norms:
            _give(norm, "weight", weight, torch.ones(width), offset)
            if isinstance(norm, LayerNorm):
                _give(norm, "bias", bias, torch.zeros(width), 0.0)
            with torch.no_grad():
                is_theirs = close(norm.steps(x), y)
            if is_theirs:
                if weight is not None and offset:
                    norm.stored = module  # whose gain is another number than ours
                return norm
    return NotExposed("the steps of its norms", **{name: Probe("position", "model") for name in ("input", "output")})


def _give(norm: nn.Module, name: str, stored: nn.Parameter | None, usual: Tensor, offset: float) -> None:
    """Set a parameter of ``norm`` to the guest's own, or to a constant if the guest has none."""
    del norm._parameters[name]
    if stored is not None and offset == 0.0:
        norm.register_parameter(name, stored)
    else:
        setattr(norm, name, usual if stored is None else (stored.detach() + offset))
