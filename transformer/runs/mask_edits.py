"""Named masks: no causal mask, no padding mask, sliding window, only itself, blocked words or cells.

Each is derived from the mask that the model would use, at its current size, so it also works while a text is being
generated. In a mask ``True`` means "may attend"; a row without any allowed key gives a context of 0. A mask is shared
by all heads of a layer. To use a mask of your own, see ``transformer.override_mask``.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from transformer.masks import causal_mask
from transformer.probes import Edit
from transformer.runs.attention_view import AttentionView


def no_causal_mask(stack: str, *, layer: int, kind: str = "self") -> Edit:
    """Let every query attend to every real token, including later ones.

    During decoding there are no later tokens *yet*.
    """

    def edit(mask: Tensor) -> Tensor:  # the last row of a causal mask allows everything but padding
        return mask.any(dim=1, keepdim=True).expand_as(mask)

    return _edit(stack, layer, kind, edit, "no causal mask")


def no_padding_mask(stack: str, *, layer: int, kind: str = "self") -> Edit:
    """Let padding be attended to like any word; causality remains (in decoder self-attention)."""

    def edit(mask: Tensor) -> Tensor:
        everything = torch.ones_like(mask)
        causal = stack == "decoder" and kind == "self"
        return everything & causal_mask(mask.shape[1], mask.shape[2], mask.device) if causal else everything

    return _edit(stack, layer, kind, edit, "no padding mask")


def sliding_window(stack: str, *, layer: int, kind: str = "self", size: int) -> Edit:
    """Allow only keys at a distance below ``size`` (Beltagy et al. 2020, "Longformer", §3.1).

    In a decoder these are the last ``size`` tokens, including the query itself; in an encoder they are on both sides.
    """
    _check_self("a sliding window", kind)
    if size < 1:
        raise ValueError(f"size is {size}; a window holds at least the token itself, 1")
    return _edit(stack, layer, kind, lambda mask: mask & (_distance(mask) < size), f"a window of {size}")


def attend_only_to_itself(stack: str, *, layer: int, kind: str = "self") -> Edit:
    """Let every token attend only to itself, so that attention moves no information between positions."""
    _check_self("looking at itself", kind)
    return _edit(stack, layer, kind, lambda mask: mask & (_distance(mask) == 0), "only itself")


def block_keys(stack: str, *, layer: int, kind: str = "self", keys: Iterable[int]) -> Edit:
    """Block the tokens at positions ``keys`` for every query; missing positions have no effect."""
    blocked = sorted({_position(key) for key in keys})

    def edit(mask: Tensor) -> Tensor:
        edited = mask.clone()
        edited[:, :, [key for key in blocked if key < mask.shape[2]]] = False
        return edited

    return _edit(stack, layer, kind, edit, f"nobody looks at {', '.join(map(str, blocked))}")


def set_cells(stack: str, *, layer: int, kind: str = "self", cells: Sequence[tuple[int, int]], allowed: bool) -> Edit:
    """Allow or block single cells (query, key). Cells that do not exist (yet) have no effect."""
    wanted = [(_position(query), _position(key)) for query, key in cells]

    def edit(mask: Tensor) -> Tensor:
        inside = [(query, key) for query, key in wanted if query < mask.shape[1] and key < mask.shape[2]]
        edited = mask.clone()
        if inside:
            queries, keys = (list(axis) for axis in zip(*inside, strict=True))
            edited[:, queries, keys] = allowed
        return edited

    return _edit(stack, layer, kind, edit, f"{len(wanted)} cells {'allowed' if allowed else 'blocked'}")


def mask_under(edits: Iterable[Edit], view: AttentionView) -> np.ndarray:
    """Return the mask that a layer has under edits of masks, without running the model.

    Args:
        edits: Edits made by the functions above; those of other layers are skipped.
        view: The layer with the model's own mask.

    Returns:
        [query, key], ``True`` where the query may attend to the key.
    """
    mask = torch.tensor(view.allowed)[None]
    for edit in edits:
        if edit.name == _probe(view.stack, view.layer, view.kind):
            mask = edit.function(mask)
    return mask[0].numpy()


def _distance(mask: Tensor) -> Tensor:
    """Return |query − key|, [query, key]."""
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
    return Edit(_probe(stack, layer, kind), function, f"{stack} {kind}-attention, layer {layer}: {what}")


def _probe(stack: str, layer: int, kind: str) -> str:
    return f"{stack}.layers.{layer}.{kind}_attention.allowed"
