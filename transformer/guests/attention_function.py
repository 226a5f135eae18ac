"""One attention function for all models of ``transformers``, which feeds the probes.

``transformers`` passes queries, keys (after rotary positions), values, mask, scale and family-specific arguments to
one function that is registered by name. Families whose attention calls no such function are recorded by intercepting
the softmax and the product with the values that follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from transformer.attention import attention_weights
from transformer.fast.shortcut import fuses, is_causal
from transformer.probes import Probe

Value = TypeVar("Value")
NAME = "glassformer"  # name under which the function is registered
_FORMULA = ("softcap", "s_aux", "position_bias")  # arguments that fused kernels do not support


@dataclass
class GuestPass:
    """One recorded pass of a guest's stack over ``batch`` texts of ``n_positions`` tokens.

    Attributes:
        depth: Index of the layer that is running.
        kept: What one hook of a layer stores for a later hook.
    """

    stack: str
    batch: int
    n_positions: int
    depth: int = -1
    kept: dict[str, Tensor] = field(default_factory=dict)
    masks: dict[int, tuple[Tensor, Tensor, Tensor | None]] = field(default_factory=dict)  # shared by the layers

    def shaped(self, tensor: Tensor) -> Tensor:
        """Return a tensor as [batch, position, …], even if it has one row per position of all texts."""
        rows = tensor.ndim == 2 and len(tensor) == self.batch * self.n_positions
        return tensor.reshape(self.batch, self.n_positions, -1) if rows else tensor


@dataclass
class AttentionCall:
    """Arguments that a family passed to ``attend``, for the trial pass."""

    module: nn.Module
    query: Tensor  # [batch, head, query, channel]
    key: Tensor  # [batch, key head, key, channel]
    value: Tensor  # [batch, key head, key, channel]
    scale: float
    cap: float | None
    context: Tensor  # [batch, query, head · channel]


_pass: ContextVar[GuestPass | None] = ContextVar("glassformer_guest_pass", default=None)
_calls: ContextVar[dict[str, Callable[[], object]] | None] = ContextVar("glassformer_layer_calls", default=None)
_trial: ContextVar[list[AttentionCall] | None] = ContextVar("glassformer_guest_trial", default=None)


def current_pass() -> GuestPass | None:
    """Return the pass that is recorded in this context, or ``None``."""
    return _pass.get()


@contextmanager
def context_value(variable: ContextVar[Value], value: Value) -> Iterator[Value]:
    """Set a context variable within a ``with`` statement."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def watched(guest_pass: GuestPass | None) -> AbstractContextManager[object]:
    """Let hooks and the attention function record ``guest_pass`` in this context, or nothing."""
    return context_value(_pass, guest_pass)


def layer_calls(calls: dict[str, Callable[[], object]] | None) -> AbstractContextManager[object]:
    """Store in ``calls``, for each layer that runs in this context, a function that runs it again alone."""
    return context_value(_calls, calls)


def trial_calls(calls: list[AttentionCall]) -> AbstractContextManager[object]:
    """Collect every call of the attention function in this context."""
    return context_value(_trial, calls)


def keep_layer_call(name: str, block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Give ``layer_calls`` a function that runs a layer again as in the first pass that reached it."""
    calls, guest_pass = _calls.get(), _pass.get()
    if calls is None or guest_pass is None:
        return

    def again() -> None:
        with watched(GuestPass(guest_pass.stack, guest_pass.batch, guest_pass.n_positions, depth=0)):
            block(*args, **kwargs)

    calls.setdefault(name, again)


@cache
def register() -> str:
    """Register ``attend`` and its mask with ``transformers``, once per process; return the name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)  # without it, decoders would attend to later tokens
    return NAME


def attend(
    module: nn.Module,
    query: Tensor,  # [batch, head, query, channel]
    key: Tensor,  # [batch, key head, key, channel]
    value: Tensor,  # [batch, key head, key, channel]
    attention_mask: Tensor | None,  # [batch, 1, query, key]: 0 or the lowest number, or biases
    scaling: float | None = None,
    dropout: float = 0.0,
    **given: Any,
) -> tuple[Tensor, Tensor | None]:  # [batch, query, head, channel], [batch, head, query, key]
    """Compute softmax(QKᵀ · scale + bias) V as each family's eager code does, with a probe at each step."""
    calls, probes = _trial.get(), probes_of(module)
    n_heads = query.shape[1]
    shared_key, shared_value = key, value
    key = key.repeat_interleave(n_heads // key.shape[1], dim=1) if key.shape[1] < n_heads else key
    value = value.repeat_interleave(n_heads // value.shape[1], dim=1) if value.shape[1] < n_heads else value
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    sinks = given.get("s_aux") if given.get("s_aux") is not None else getattr(module, "sinks", None)
    plain = sinks is None and not any(given.get(name) is not None for name in _FORMULA)
    if probes is not None:
        query, key, value = probes.query(query), probes.key(key), probes.value(value)
    if calls is None and plain and fuses(*_hidden_by_kernels(probes)):
        causal = attention_mask is not None and is_causal(attention_mask)
        context = F.scaled_dot_product_attention(
            query, key, value, None if causal else attention_mask, dropout, is_causal=causal, scale=scale
        )
        return context.transpose(1, 2).contiguous(), None
    scores = torch.matmul(query, key.transpose(2, 3)) * scale  # [batch, head, query, key]
    if cap := given.get("softcap"):
        scores = torch.tanh(scores / cap) * cap
    if (bias := given.get("position_bias")) is not None:
        scores = scores + bias
    allowed, bias = _mask_once(attention_mask, scores)
    if bias is not None:
        scores = scores + bias
    shown = allowed
    if probes is not None:
        scores, shown = probes.scores(scores), probes.allowed(allowed)
    if sinks is not None:
        weights = _with_sinks(scores, shown, sinks)
    elif shown is allowed and bias is None and (attention_mask is None or attention_mask.is_floating_point()):
        masked = scores if attention_mask is None else scores + attention_mask[..., : scores.shape[-1]]
        weights = torch.softmax(masked, dim=-1, dtype=torch.float32).to(query.dtype)
    else:
        weights = attention_weights(scores.float(), shown[:, None]).to(query.dtype)
    if probes is not None:
        weights = probes.weights(weights)
    dropped = F.dropout(weights, dropout, module.training) if dropout else weights
    context = torch.matmul(dropped, value)  # [batch, head, query, channel]
    if probes is not None:
        context = probes.context(context)
    context = context.transpose(1, 2).contiguous()
    if calls is not None:
        calls.append(AttentionCall(module, query, shared_key, shared_value, scale, cap, context.flatten(2)))
    return context, weights


def _hidden_by_kernels(probes: Any) -> tuple[Probe, ...]:
    """Return the probes of an attention module whose tensors a fused kernel does not return."""
    return () if probes is None else (probes.scores, probes.allowed, probes.weights, probes.context)


def _mask_once(mask: Tensor | None, scores: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return ``_read_mask``, computed once per pass for all layers that share a mask."""
    guest_pass = _pass.get()
    if mask is None or guest_pass is None:
        return _read_mask(mask, scores)
    if id(mask) not in guest_pass.masks:
        guest_pass.masks[id(mask)] = (mask, *_read_mask(mask, scores))
    return guest_pass.masks[id(mask)][1:]


def _read_mask(mask: Tensor | None, scores: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the allowed keys, [batch, query, key], and the finite numbers of the mask, if any."""
    batch, _, n_queries, n_keys = scores.shape
    if mask is None:
        return scores.new_ones(batch, n_queries, n_keys, dtype=torch.bool), None
    mask = mask[..., :n_keys]
    if mask.dtype == torch.bool:
        return mask[:, 0].expand(batch, n_queries, n_keys), None
    allowed = mask > torch.finfo(mask.dtype).min / 2
    finite = torch.where(allowed, mask, 0.0) if bool((mask * allowed).any()) else None
    return allowed[:, 0].expand(batch, n_queries, n_keys), finite


def _with_sinks(scores: Tensor, allowed: Tensor, sinks: Tensor) -> Tensor:
    """Let a head attend to nothing: its sink takes a share of each row and contributes no value (gpt-oss)."""
    scores = torch.where(allowed[:, None], scores, torch.finfo(scores.dtype).min)
    column = sinks.reshape(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
    together = torch.cat((scores, column), dim=-1)
    together = together - together.max(dim=-1, keepdim=True).values  # half precision would overflow
    return torch.softmax(together.float(), dim=-1)[..., :-1].to(scores.dtype) * allowed[:, None]


def show(module: nn.Module, probes: nn.Module) -> None:
    """Connect the attention of ``module`` to ``probes``, a module with the probes of our attention."""
    module.__dict__["_glassformer_probes"] = probes


def probes_of(module: nn.Module) -> Any:
    """Return the probes of an attention module, or ``None`` where nothing records this pass."""
    return None if _pass.get() is None else module.__dict__.get("_glassformer_probes")


SOFTMAXES = (F.softmax, torch.softmax, Tensor.softmax)
PRODUCTS = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm)


class WatchedSoftmax(TorchFunctionMode):
    """Mode that records the softmax of a custom attention and the product with the values that follows it."""

    def __init__(self, probes: Any) -> None:
        super().__init__()
        self.probes, self.weights = probes, None

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in SOFTMAXES and self.weights is None and args and args[0].ndim == 4:
            scores = args[0]
            allowed = self.probes.allowed((scores > torch.finfo(scores.dtype).min / 2).all(dim=1))
            scores = self.probes.scores(scores)
            self.weights = self.probes.weights(attention_weights(scores.float(), allowed[:, None]).to(scores.dtype))
            return self.weights
        if func in PRODUCTS and self.weights is not None and self.probes is not None:
            batch, n_heads, n_queries, n_keys = self.weights.shape
            given, value = args[:2]
            if given.shape[-2:] == (n_queries, n_keys):
                probes, self.probes = self.probes, None
                if value.ndim == 4 and value.shape[1] < n_heads:  # several heads share their values
                    value = value.repeat_interleave(n_heads // value.shape[1], dim=1)
                value = probes.value(value.reshape(batch, n_heads, n_keys, -1)).reshape(value.shape)
                context = func(given, value, *args[2:], **kwargs)
                shown = probes.context(context.reshape(batch, n_heads, n_queries, -1))
                return shown.reshape(context.shape)
        return func(*args, **kwargs)


def watch_softmax(module: nn.Module) -> None:
    """Record a module that calls no registered attention function with ``WatchedSoftmax``."""
    module.forward = partial(_watched_forward, module)


def _watched_forward(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    if (probes := probes_of(module)) is None:
        return type(module).forward(module, *args, **kwargs)
    with WatchedSoftmax(probes):
        return type(module).forward(module, *args, **kwargs)
