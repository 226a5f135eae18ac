"""Names of heads: "layer 2, head 3" in sentences and titles."""

from __future__ import annotations

from charts.toolkit.words import say


def layer_name(layer: int) -> str:
    """Return "layer 2" in the reader's language."""
    return say("names.numbered_layer", layer=layer)


def head_name(layer: int, head: int) -> str:
    """Return "layer 2, head 3" in the reader's language."""
    return say("layer_head", layer=layer, head=head)
