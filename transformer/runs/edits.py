"""Changes to the live model, for one call: what if this head, this edge, this mask were different?

Masks by name: ``transformer.runs.mask_edits``.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from transformer.models import Model
from transformer.probes import Edit, Probe, recorded_so_far
from transformer.text.message import did_you_mean

SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")


def check_edits(probes: Mapping[str, Probe], edits: Iterable[Edit]) -> None:
    """Refuse an edit of a probe that does not exist: it would silently do nothing."""
    for edit in edits:
        if edit.name not in probes:
            hint = did_you_mean(edit.name, probes, otherwise="model.probes has all names")
            raise ValueError(f"there is no activation {edit.name!r} to edit; {hint}")


def ablate_head(stack: str, *, layer: int, kind: str = "self", head: int) -> Edit:
    """Zero what one head contributes: its context rows, before W_O (Michel et al. 2019, §2.3)."""

    return _edit_head(stack, layer, kind, head, torch.zeros_like, f"no head {head}")


def scale_head(stack: str, *, layer: int, kind: str = "self", head: int, factor: float) -> Edit:
    """Multiply what one head contributes by ``factor``: 1 changes nothing, 0 removes the head, 2 doubles it."""
    if not math.isfinite(factor):
        raise ValueError(f"factor is {factor}; a head can only be scaled by a finite number")
    return _edit_head(stack, layer, kind, head, lambda context: context * factor, f"head {head} × {factor:g}")


def mean_ablate_head(stack: str, *, layer: int, kind: str = "self", head: int, mean: np.ndarray | None = None) -> Edit:
    """Replace every row of one head's context by a mean: what the head says *on average* stays, what it says about
    each position is lost (Wang et al. 2023, "Interpretability in the Wild", §3).

    ``mean`` [channel]: one taken elsewhere, e.g. over a corpus. Without it, it is the mean over the positions of this
    very run: in the encoder over all of them (padding included), in the decoder, row by row, over the positions up to
    this one, so that no row learns of later ones and writing agrees with reading what was written.
    """
    wanted = None if mean is None else torch.as_tensor(np.array(mean))

    def average(context: Tensor) -> Tensor:  # [batch, query, channel]
        n_positions, n_channels = context.shape[1:]
        if wanted is not None:
            if wanted.shape != (n_channels,):
                raise ValueError(
                    f"mean has shape {tuple(wanted.shape)}; a head of this model has {n_channels} channels"
                )
            return wanted.to(context).expand_as(context)
        if stack == "encoder":
            return context.mean(dim=1, keepdim=True).expand_as(context)
        counts = torch.arange(1, n_positions + 1, dtype=context.dtype, device=context.device)
        return context.cumsum(dim=1) / counts[:, None]

    return _edit_head(stack, layer, kind, head, average, f"head {head} says its mean")


def patch_head(stack: str, *, layer: int, kind: str = "self", head: int, context: np.ndarray) -> Edit:
    """Put one head's context [query, channel] of another run in the place of this run's, position by position.

    The two sentences may differ in length: positions that the other run does not have keep their own rows. Take it from
    ``other_trace[f"{stack}.layers.{layer}.{kind}_attention.context"].values[head]``.
    """
    wanted = torch.as_tensor(np.array(context))

    def replace(own: Tensor) -> Tensor:  # [batch, query, channel]
        if wanted.ndim != 2 or wanted.shape[1] != own.shape[2]:
            raise ValueError(
                f"the context patched in has shape {tuple(wanted.shape)}; this model needs [query, {own.shape[2]}]"
            )
        n_shared = min(len(wanted), own.shape[1])
        patched = wanted[:n_shared].to(own).expand(len(own), -1, -1)
        return torch.cat((patched, own[:, n_shared:]), dim=1)

    return _edit_head(stack, layer, kind, head, replace, f"head {head} taken from another run")


def ablate_edge(stack: str, *, layer: int, kind: str = "self", head: int, query: int, key: int) -> Edit:
    """Zero one attention weight; the rest of the row is left as it is (it no longer sums to 1)."""
    if query < 0 or key < 0:
        raise ValueError(f"there is no edge {query}→{key}; count from 0")

    def zero(weights: Tensor) -> Tensor:  # [batch, head, query, key]
        _check_index("head", head, weights.shape[1])
        edited = weights.clone()
        edited[:, head, query : query + 1, key : key + 1] = 0.0  # slices: while writing, the edge may not exist yet
        return edited

    return Edit(
        _attention(stack, layer, kind, "weights"),
        zero,
        f"{stack} {kind}-attention, layer {layer}, head {head}: no edge {query}→{key}",
    )


def override_mask(stack: str, *, layer: int, kind: str = "self", allowed: np.ndarray) -> Edit:
    """Use another mask, [query, key], ``True`` = may attend. While a text is written, only its first rows are used."""
    wanted = torch.as_tensor(np.asarray(allowed, dtype=bool))

    def replace(mask: Tensor) -> Tensor:  # [batch, query, key]
        n_queries, n_keys = mask.shape[1:]
        if n_queries > wanted.shape[0] or n_keys > wanted.shape[1]:
            raise ValueError(
                f"the mask given for {stack} {kind}-attention is {tuple(wanted.shape)} but {n_queries} queries look "
                f"at {n_keys} keys; make it at least that large"
            )
        return wanted[:n_queries, :n_keys].to(mask.device).expand_as(mask)

    return Edit(
        _attention(stack, layer, kind, "allowed"), replace, f"{stack} {kind}-attention, layer {layer}: another mask"
    )


def patch(name: str, values: np.ndarray) -> Edit:
    """Put another run's activation (without its batch axis) in the place of this run's; the shapes must agree."""
    wanted = torch.as_tensor(np.array(values))

    def replace(tensor: Tensor) -> Tensor:
        if tensor.shape[1:] != wanted.shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape[1:])} in this run but {tuple(wanted.shape)} in the run that is "
                f"patched in; patch between sentences with the same number of tokens, and give the target"
            )
        return wanted.to(tensor).expand_as(tensor)

    return Edit(name, replace, f"{name} taken from another run")


def _edit_head(stack: str, layer: int, kind: str, head: int, change: Callable[[Tensor], Tensor], what: str) -> Edit:
    """An edit of one head's context; ``change`` gets it without the axis of the heads."""

    def edit(context: Tensor) -> Tensor:  # [batch, head, query, channel]
        _check_index("head", head, context.shape[1])
        return torch.cat((context[:, :head], change(context[:, head])[:, None], context[:, head + 1 :]), dim=1)

    return Edit(_attention(stack, layer, kind, "context"), edit, f"{stack} {kind}-attention, layer {layer}: {what}")


def _attention(stack: str, layer: int, kind: str, what: str) -> str:
    return f"{stack}.layers.{layer}.{kind}_attention.{what}"


def _check_index(what: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise ValueError(f"there is no {what} {index}; this model has {what}s 0 to {size - 1}")


def remove_sublayer(stack: str, *, layer: int, which: str) -> Edit:
    """The sub-layer adds 0 to the residual stream: x + 0 (pre-norm), norm(x + 0) (post-norm).

    ``which``: "self_attention", "cross_attention" or "feed_forward".
    """
    _check_which(which)
    name = f"{stack}.layers.{layer}.{which}.output"
    return Edit(name, torch.zeros_like, f"{stack}, layer {layer}: no {which.replace('_', '-')}")


def remove_residual(model: Model, stack: str, *, layer: int, which: str) -> Edit:
    """The stream does not go past this sub-layer: sublayer(norm(x)) (pre-norm), norm(sublayer(x)) (post-norm).

    Everything that was known before has to come through the sub-layer. ``model`` says where its LayerNorm stands.
    """
    _check_which(which)
    prefix = f"{stack}.layers.{layer}"
    after = "out" if which == "feed_forward" else f"after_{which}"
    name = f"{prefix}.residual.{after}" if model.config.norm == "pre" else f"{prefix}.{which}_norm.input"

    def only_sublayer(stream: Tensor) -> Tensor:  # [batch, position, model]
        return recorded_so_far(f"{prefix}.{which}.output").expand_as(stream)

    return Edit(name, only_sublayer, f"{stack}, layer {layer}: no residual around {which.replace('_', '-')}")


def _check_which(which: str) -> None:
    if which not in SUBLAYERS:
        raise ValueError(f"which is {which!r}; choose one of {', '.join(SUBLAYERS)}")
