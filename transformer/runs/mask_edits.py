"""Named masks, as texts.

===================  ==============================================================================
``no_causal``        every query may attend to every real token, including later ones
``no_padding``       padding may be attended to like any word; a causal mask remains
``window 3``         only keys at a distance below 3 (Beltagy et al. 2020, "Longformer", §3.1)
``itself``           only the token itself, so that attention moves no information between positions
``keys 4,5``         no query may attend to these positions
``allow 2-3,2-4``    these cells (query-key) are allowed
``block 2-0``        these cells are blocked
===================  ==============================================================================

Each mask is derived from the model's own mask at its current size, so it also works while a text is being generated:
positions that do not exist (yet) have no effect. In a mask ``True`` means "may attend"; a row without any allowed key
gives a context of 0. A mask is shared by all heads of a layer. To use a mask of your own, see
``transformer.override_mask``.
"""

import re
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from transformer.errors import MessageError
from transformer.masks import causal_mask
from transformer.probes import Edit
from transformer.runs.attention_view import AttentionView
from transformer.text.message import short_repr

_FORM = re.compile(
    r"no_causal|no_padding|itself|window [1-9]\d{0,8}|keys \d+(,\d+)*|(allow|block) \d+-\d+(,\d+-\d+)*", re.ASCII
)
_OF_ONE_SEQUENCE = ("itself", "window")  # masks by the distance of two positions


def is_mask(text: str, kind: str = "self") -> bool:
    """Return whether a text names a mask of this kind of attention; cross-attention has no distances."""
    return bool(_FORM.fullmatch(text)) and (kind == "self" or not text.startswith(_OF_ONE_SEQUENCE))


def mask_edit(stack: str, *, layer: int, kind: str = "self", mask: str) -> Edit:
    """Use the mask that a text names, e.g. ``mask_edit("decoder", layer=0, mask="window 3")``."""
    if not is_mask(mask, kind):
        raise MessageError(f"{short_repr(mask)} is no mask of {kind}-attention; write it like window 3 or block 2-0")
    name, _, rest = mask.partition(" ")
    numbers = [tuple(map(int, pair.split("-"))) for pair in rest.split(",") if pair]
    is_causal = (stack, kind) == ("decoder", "self")
    return Edit(
        f"{stack}.layers.{layer}.{kind}_attention.allowed",
        lambda own: _changed(own, name, numbers, is_causal=is_causal),
        f"{stack} {kind}-attention, layer {layer}: the mask {mask}",
    )


def _changed(own: Tensor, name: str, numbers: list[tuple[int, ...]], *, is_causal: bool) -> Tensor:
    """Return another mask instead of the model's own: [batch, query, key]."""
    n_queries, n_keys = own.shape[1:]
    if name == "no_causal":  # the last row of a causal mask allows everything but padding
        return own.any(dim=1, keepdim=True).expand_as(own)
    if name == "no_padding":
        everything = torch.ones_like(own)
        return everything & causal_mask(n_queries, n_keys, own.device) if is_causal else everything
    positions = torch.arange(n_keys, device=own.device)
    if name in _OF_ONE_SEQUENCE:
        size = numbers[0][0] if numbers else 1
        return own & ((positions[n_keys - n_queries :, None] - positions).abs() < size)
    edited = own.clone()
    if name == "keys":
        edited[:, :, [key for (key,) in numbers if key < n_keys]] = False
    elif inside := [(query, key) for query, key in numbers if query < n_queries and key < n_keys]:
        queries, keys = map(list, zip(*inside, strict=True))
        edited[:, queries, keys] = name == "allow"
    return edited


def mask_under(edits: Iterable[Edit], view: AttentionView) -> np.ndarray:
    """Return the mask that a layer has under edits of masks, without running the model.

    Args:
        edits: Edits of masks; those of other layers are skipped.
        view: The layer with the model's own mask.

    Returns:
        [query, key], ``True`` where the query may attend to the key.
    """
    mask = torch.tensor(view.allowed)[None]
    for edit in edits:
        if edit.name == f"{view.name}.allowed":
            mask = edit.function(mask)
    return mask[0].numpy()
