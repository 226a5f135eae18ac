"""Edits: changes to the model for one call, e.g. without a head or an edge, or with another mask.

For named masks, see ``transformer.runs.mask_edits``.
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
    """Check that every edited probe exists; an edit of a missing probe would silently do nothing.

    Raises:
        ValueError: If a probe does not exist.
    """
    for edit in edits:
        if edit.name not in probes:
            hint = did_you_mean(edit.name, probes, otherwise="model.probes has all names")
            raise ValueError(f"there is no activation {edit.name!r} to edit; {hint}")


def ablate_head(stack: str, *, layer: int, kind: str = "self", head: int) -> Edit:
    """Zero the output of one head: its context rows, before W_O (Michel et al. 2019, §2.3)."""
    return _edit_head(stack, layer, kind, head, torch.zeros_like, f"no head {head}")


def scale_head(stack: str, *, layer: int, kind: str = "self", head: int, factor: float) -> Edit:
    """Multiply the output of one head by ``factor``: 1 changes nothing, 0 removes the head, 2 doubles it."""
    if not math.isfinite(factor):
        raise ValueError(f"factor is {factor}; a head can only be scaled by a finite number")
    return _edit_head(stack, layer, kind, head, lambda context: context * factor, f"head {head} × {factor:g}")


def mean_ablate_head(stack: str, *, layer: int, kind: str = "self", head: int, mean: np.ndarray | None = None) -> Edit:
    """Replace every row of one head's context by a mean (Wang et al. 2023, §3).

    The head keeps its average output and loses what depends on the position.

    Args:
        stack: "encoder" or "decoder".
        layer: Index of the layer.
        kind: "self" or "cross".
        head: Index of the head.
        mean: Mean computed elsewhere, e.g. over a corpus, [channel]. By default it is computed in this run: in the
            encoder over all positions (including padding), in the decoder for each row over the positions up to it, so
            that no row depends on later ones and decoding agrees with reading the decoded text.
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
    """Replace one head's context by that of another run, [query, channel], position by position.

    The two sentences may differ in length: positions that the other run lacks keep their own rows. The context of
    another trace is ``other_trace[f"{stack}.layers.{layer}.{kind}_attention.context"].values[head]``.
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


def steer(stack: str, *, layer: int, direction: np.ndarray, strength: float = 1.0) -> Edit:
    """Add c · d to the residual stream where a layer reads it, at every position: x ← x + c · d.

    "Activation Addition" (Turner et al. 2023) and "Contrastive Activation Addition" (Rimsky et al. 2023);
    ``transformer.runs.directions`` makes their directions. Every generated token is steered, too.

    Args:
        stack: "encoder" or "decoder".
        layer: Index of the layer that reads the changed stream.
        direction: d, [model].
        strength: c; with 0, the stream stays as it is, bit for bit.
    """
    if not math.isfinite(strength):
        raise ValueError(f"strength is {strength}; a direction can only be multiplied by a finite number")
    added = torch.as_tensor(np.array(direction, dtype=np.float64)) * strength

    def add(stream: Tensor) -> Tensor:  # [batch, position, model]
        if added.shape != stream.shape[-1:]:
            raise ValueError(f"the direction has shape {tuple(added.shape)}; this model needs [{stream.shape[-1]}]")
        return stream if strength == 0 else stream + added.to(stream)

    return Edit(f"{stack}.layers.{layer}.residual.in", add, f"{stack}, layer {layer}: a direction × {strength:g}")


def ablate_edge(stack: str, *, layer: int, kind: str = "self", head: int, query: int, key: int) -> Edit:
    """Zero one attention weight; the rest of the row keeps its values and no longer sums to 1."""
    if query < 0 or key < 0:
        raise ValueError(f"there is no edge {query}→{key}; count from 0")

    def zero(weights: Tensor) -> Tensor:  # [batch, head, query, key]
        _check_index("head", head, weights.shape[1])
        edited = weights.clone()
        edited[:, head, query : query + 1, key : key + 1] = 0.0  # slices: during decoding, the edge may not exist yet
        return edited

    return Edit(
        _attention(stack, layer, kind, "weights"),
        zero,
        f"{stack} {kind}-attention, layer {layer}, head {head}: no edge {query}→{key}",
    )


def override_mask(stack: str, *, layer: int, kind: str = "self", allowed: np.ndarray) -> Edit:
    """Use another mask, [query, key], ``True`` = may attend. Decoding uses only its first rows."""
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
    """Replace an activation by that of another run (without its batch axis); the shapes must agree."""
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
    """Return an edit of one head's context; ``change`` receives it without the head axis."""

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
    """Replace the output of a sub-layer by 0: x + 0 (pre-norm), norm(x + 0) (post-norm).

    ``which`` is "self_attention", "cross_attention" or "feed_forward".
    """
    _check_which(which)
    name = f"{stack}.layers.{layer}.{which}.output"
    return Edit(name, torch.zeros_like, f"{stack}, layer {layer}: no {which.replace('_', '-')}")


def remove_residual(model: Model, stack: str, *, layer: int, which: str) -> Edit:
    """Remove the residual connection around a sub-layer.

    What remains is sublayer(norm(x)) for pre-norm and norm(sublayer(x)) for post-norm. All information then has to
    pass through the sub-layer. ``model`` determines where its LayerNorm is.
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
