"""A guest described by our layers: the same names, probes and matrices, while its own code computes.

Every part that ``structure`` found appears where our layers have it and shares its memory. A part that was not found
is a ``NotExposed``, whose error message explains what is missing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.attention import MultiHeadAttention
from transformer.decoder import DecoderLayer
from transformer.encoder import EncoderLayer
from transformer.errors import NotExposedError
from transformer.feed_forward import ACTIVATION_FUNCTIONS, FeedForward
from transformer.guests.described_layers import (
    GatedFeedForward,
    GroupedQueryAttention,
    HalvedSinusoids,
    ParallelLayer,
    SandwichLayer,
)
from transformer.guests.guest_config import GuestConfig
from transformer.guests.half_precision import HalfPrecisionLinear
from transformer.guests.structure import (
    Factor,
    FoundAttention,
    FoundFeedForward,
    FoundLayer,
    FoundNorm,
    FoundProjection,
    FoundStack,
)
from transformer.layer_norm import LayerNorm, RMSNorm
from transformer.positions import LearnedEncoding, RelativePositionBias
from transformer.probes import Probe

EXPERTS = "the units of its feed-forward layers, which are mixtures of experts"
ATTENTION = "queries and keys, because its attention has its own code"


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
    """Whether a factor changes nothing."""
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
    """Rows that a network adds to its tokens, one per position: those of an image, found in a trial pass."""

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


def describe_positions(found: FoundStack) -> nn.Module:
    """Return the rows that a guest adds to its tokens, as a module of our models."""
    holder, name = found.position_module, found.position_name
    if found.position_rows is not None:
        holder, name = Rows(found.position_rows), "rows"
    assert holder is not None
    if found.sines is not None:
        return SharedSinusoids(holder, name, *found.sines)
    kind = SharedLearnedPositions if found.added == "learned" else SharedPositions
    return kind(holder, name, found.position_offset)


class SharedBias(RelativePositionBias):
    """A guest's table of one number per head and bucket of distances, which is added to every score.

    Args:
        source: The table, [bucket, head].
        causal: Whether only earlier tokens have buckets.
        max_distance: Distance from which all share one bucket.
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
    """Whether a layer computes x Wᵀ + b and nothing else, its weights in float32 or half precision."""
    return type(module) in (nn.Linear, HalfPrecisionLinear)


def linear(module: nn.Module, rows: Tensor | None = None, factor: Factor = 1.0) -> nn.Module:
    """Return a guest's linear layer: the ``nn.Linear`` itself if used unchanged, otherwise a view of it."""
    if rows is None and is_one(factor) and is_plain_linear(module):
        return module
    return SharedLinear(module, rows, factor)


def describe_norm(found: FoundNorm | None, config: GuestConfig, why: str = "") -> nn.Module:
    """Return our norm with the guest's weights, or only the input and output of an unknown kind of norm.

    Without a norm, ``why`` says what is not known; by default, that there is none.
    """
    if found is None:
        return NotExposed(why or "a norm at this location: there is none")
    if not found.kind:
        probes = {name: Probe("position", "model") for name in ("input", "output")}
        return NotExposed("the steps of its norms", **probes)
    return norm_of(found, config.d_model)


def norm_of(found: FoundNorm, width: int) -> nn.Module:
    """Return our norm of the kind that was found, with the guest's parameters."""
    stored = getattr(found.module, "weight", None)
    if found.kind == "layer":
        norm: Any = LayerNorm(SimpleNamespace(layer_norm_epsilon=found.epsilon, d_model=width))
        _give(norm, "bias", getattr(found.module, "bias", None), torch.zeros(width), 0.0)
    else:
        norm = RMSNorm(width, found.epsilon)
    _give(norm, "weight", stored, torch.ones(width), found.offset)
    if found.offset:
        norm.stored = found.module  # whose gain is another number than ours
    return norm


def _give(norm: nn.Module, name: str, stored: nn.Parameter | None, usual: Tensor, offset: float) -> None:
    """Set a parameter of ``norm`` to the guest's own, or to a constant if the guest has none."""
    del norm._parameters[name]
    if stored is not None and offset == 0.0:
        norm.register_parameter(name, stored)
    else:
        setattr(norm, name, usual if stored is None else (stored.detach() + offset))


def describe_attention(found: FoundAttention, config: GuestConfig, index: int, *, factor: Factor) -> nn.Module:
    """Return our attention with the guest's matrices, each in the order of our heads."""
    with torch.device("meta"):
        if config.n_key_heads:
            attention: Any = GroupedQueryAttention(config, n_key_heads=config.n_key_heads)
        else:
            attention = MultiHeadAttention(config)
    call = found.call
    for name in ("query", "key", "value"):
        attention.__setattr__(f"{name}_projection", _projection(getattr(found, name)))
    attention.output_projection = (
        NotExposed("the output matrix of its heads") if found.output is None else linear(found.output, None, factor)
    )
    attention.rotary = None
    if call is None:
        attention.query, attention.key = NotExposed(ATTENTION), NotExposed(ATTENTION)
        attention.__dict__["scale"] = None
        return attention
    attention.scale = call.scale
    attention.d_head, attention.n_heads = call.query.shape[-1], call.query.shape[1]
    if config.n_key_heads:
        attention.score_cap = call.cap
        attention.window = config.windows[index] if config.windows else None
    for name in ("query_norm", "key_norm"):
        if (norm := getattr(found, name)) is not None:
            setattr(attention, name, norm.module)
    return attention


def _projection(found: FoundProjection | None) -> nn.Module:
    if found is None:
        return NotExposed("the projections of its queries, keys and values")
    return linear(found.module, found.rows, found.factor)


def describe_feed_forward(found: FoundFeedForward | None, config: GuestConfig, *, factor: Factor) -> nn.Module:
    """Return our feed-forward layer with the guest's matrices; for experts, only output and router."""
    if found is None:
        return NotExposed("its feed-forward layers")
    output = Probe("position", "model")
    if found.experts is not None:
        router = {} if found.router is None else {"router": Probe("position", "expert")}
        return NotExposed(EXPERTS, output=output, **router)
    hidden = Probe("position", "hidden")
    if found.first is None or found.down is None:
        return NotExposed("the weights of its feed-forward units", hidden=hidden, output=output)
    with torch.device("meta"):
        layer: Any = GatedFeedForward(config) if found.gated else FeedForward(config)
    layer.activation = ACTIVATION_FUNCTIONS.get(found.activation) or _unknown_activation
    half = torch.arange(found.width)
    if found.fused:
        layer.gate_projection = linear(found.first, half)
        layer.input_projection = linear(found.first, half + found.width)
    elif found.gated and found.second is not None:
        layer.gate_projection, layer.input_projection = linear(found.first), linear(found.second)
    else:
        layer.input_projection = linear(found.first)
    if found.gated and found.activation_module is None:
        layer.gate = NotExposed("the gates of its feed-forward units")
    layer.output_projection = linear(found.down, None, factor)
    return layer


def _unknown_activation(_: Tensor) -> Tensor:
    raise not_exposed("its activation function")


def describe_layer(found: FoundLayer, config: GuestConfig, index: int, *, causal: bool) -> nn.Module:
    """Return one of our layers, with the order of norms and sums that was found."""
    with torch.device("meta"):
        if found.order == "parallel":
            layer: Any = ParallelLayer(config)
        elif found.order == "pre" and {"self_attention_output_norm", "feed_forward_output_norm"} & found.norms.keys():
            layer = SandwichLayer(config)
        elif causal:
            layer = DecoderLayer(config, cross=config.has_encoder)
        else:
            layer = EncoderLayer(config)
    layer.pre_norm = found.order != "post"
    layer.self_attention = describe_attention(found.self_attention, config, index, factor=found.factors[0])
    if getattr(layer, "cross_attention", None) is not None:
        layer.cross_attention = (
            NotExposed("its cross-attention")
            if found.cross_attention is None
            else describe_attention(found.cross_attention, config, index, factor=found.factors[0])
        )
    layer.feed_forward = describe_feed_forward(found.feed_forward, config, factor=found.factors[1])
    for name, child in list(layer.named_children()):
        if isinstance(child, LayerNorm | RMSNorm):
            setattr(layer, name, describe_norm(found.norms.get(name), config, "" if found.order else found.unexplained))
    if not found.order:
        for stage in list(layer.residual):
            if stage.startswith("after"):
                layer.residual[stage] = NotExposed(found.unexplained)
    return layer
