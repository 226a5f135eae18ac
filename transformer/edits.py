"""Changes to the live model, for one call: what if this head, this edge, this mask were different?"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from transformer.probes import Edit


def ablate_head(stack: str, *, layer: int, kind: str = "self", head: int) -> Edit:
    """Zero what one head contributes: its context rows, before W_O (Michel et al. 2019, §2.3)."""

    def zero(context: Tensor) -> Tensor:  # [batch, head, query, channel]
        _check_index("head", head, context.shape[1])
        kept = torch.ones(context.shape[1], dtype=context.dtype, device=context.device)
        kept[head] = 0.0
        return context * kept[:, None, None]

    return Edit(
        _attention(stack, layer, kind, "context"), zero, f"{stack} {kind}-attention, layer {layer}: no head {head}"
    )


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


def _attention(stack: str, layer: int, kind: str, what: str) -> str:
    return f"{stack}.layers.{layer}.{kind}_attention.{what}"


def _check_index(what: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise ValueError(f"there is no {what} {index}; this model has {what}s 0 to {size - 1}")
