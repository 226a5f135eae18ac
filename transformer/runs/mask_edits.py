"""Other masks by name: no causal mask, no padding mask, a sliding window, only itself, a blocked word, single cells.

Each is made from the mask that the model would use, at whatever size it has: also while a text is written and grows. In
a mask ``True`` means "may attend"; a row without any leaves the head with nothing to say (its context is 0). To put a
mask of your own in place of the model's: ``transformer.override_mask``. A mask is shared by all heads of a layer.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from transformer.masks import causal_mask
from transformer.probes import Edit


def no_causal_mask(stack: str, *, layer: int, kind: str = "self") -> Edit:
    """Every query may look at every real token, later ones included. While writing there are no later ones *yet*."""

    def edit(mask: Tensor) -> Tensor:  # [batch, query, key]; the last row of a causal mask sees everything but pads
        return mask.any(dim=1, keepdim=True).expand_as(mask)

    return _edit(stack, layer, kind, edit, "no causal mask")


def no_padding_mask(stack: str, *, layer: int, kind: str = "self") -> Edit:
    """Padding may be looked at as if it were a word; causality stays (in the self-attention of a decoder)."""

    def edit(mask: Tensor) -> Tensor:
        everything = torch.ones_like(mask)
        causal = stack == "decoder" and kind == "self"
        return everything & causal_mask(mask.shape[1], mask.shape[2], mask.device) if causal else everything

    return _edit(stack, layer, kind, edit, "no padding mask")


def sliding_window(stack: str, *, layer: int, kind: str = "self", size: int) -> Edit:
    """Only keys less than ``size`` places away (Beltagy et al. 2020, "Longformer", §3.1).

    In a decoder these are the last ``size`` tokens, itself included; in an encoder they lie on both sides.
    """
    _check_self("a sliding window", kind)
    if size < 1:
        raise ValueError(f"size is {size}; a window holds at least the token itself, 1")
    return _edit(stack, layer, kind, lambda mask: mask & (_distance(mask) < size), f"a window of {size}")


def only_itself(stack: str, *, layer: int, kind: str = "self") -> Edit:
    """Every token may look at itself and nothing else: attention moves nothing between positions."""
    _check_self("looking at itself", kind)
    return _edit(stack, layer, kind, lambda mask: mask & (_distance(mask) == 0), "only itself")


def block_keys(stack: str, *, layer: int, kind: str = "self", keys: Iterable[int]) -> Edit:
    """Nobody may look at the tokens at positions ``keys``. Where they do not exist (yet), nothing happens."""
    blocked = sorted({_position(key) for key in keys})

    def edit(mask: Tensor) -> Tensor:
        edited = mask.clone()
        edited[:, :, [key for key in blocked if key < mask.shape[2]]] = False
        return edited

    return _edit(stack, layer, kind, edit, f"nobody looks at {', '.join(map(str, blocked))}")


def set_cells(stack: str, *, layer: int, kind: str = "self", cells: Sequence[tuple[int, int]], allowed: bool) -> Edit:
    """Allow or block single cells (query, key). Cells that do not exist (yet) are left out."""
    wanted = [(_position(query), _position(key)) for query, key in cells]

    def edit(mask: Tensor) -> Tensor:
        inside = [(query, key) for query, key in wanted if query < mask.shape[1] and key < mask.shape[2]]
        edited = mask.clone()
        if inside:
            queries, keys = (list(axis) for axis in zip(*inside, strict=True))
            edited[:, queries, keys] = allowed
        return edited

    return _edit(stack, layer, kind, edit, f"{len(wanted)} cells {'allowed' if allowed else 'blocked'}")


def _distance(mask: Tensor) -> Tensor:
    """|query − key|: [query, key]."""
    n_queries, n_keys = mask.shape[1:]
    queries = torch.arange(n_keys - n_queries, n_keys, device=mask.device)
    return (queries[:, None] - torch.arange(n_keys, device=mask.device)).abs()


def _check_self(what: str, kind: str) -> None:
    if kind != "self":
        raise ValueError(f"{what} is about places in one sequence; in {kind}-attention queries and keys are two")


def _position(index: int) -> int:
    if index < 0:
        raise ValueError(f"there is no position {index}; count from 0")
    return int(index)


def _edit(stack: str, layer: int, kind: str, function: Callable[[Tensor], Tensor], what: str) -> Edit:
    name = f"{stack}.layers.{layer}.{kind}_attention.allowed"
    return Edit(name, function, f"{stack} {kind}-attention, layer {layer}: {what}")
