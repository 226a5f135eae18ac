"""What the mask editor in the browser needs, and what it sends back."""

from typing import NamedTuple

import numpy as np

from charts.canvas.attention_payload import Cell, attention_map_payload
from charts.toolkit.payload_bytes import mask_bits, with_metadata
from transformer.runs.attention_view import AttentionView


class MaskStroke(NamedTuple):
    """Cells that were painted on in one movement, and whether they are to be allowed or blocked."""

    cells: tuple[Cell, ...]
    allowed: bool


def mask_editor_payload(view: AttentionView, *, head: int, own: np.ndarray, height: int | None = None) -> bytes:
    """One head with the mask of ``view``, and ``own`` [query, key], the mask that the model would use by itself.

    Raises ``ValueError`` when the two masks differ in shape.
    """
    mask = np.asarray(own, dtype=bool)
    if mask.shape != view.allowed.shape:
        raise ValueError(f"own has shape {mask.shape} but the mask of {view.name} has {view.allowed.shape}")
    payload = attention_map_payload(view, head=head, height=height, arrays={"own": mask_bits(mask)})
    return with_metadata(payload, {"kind": "mask"})
