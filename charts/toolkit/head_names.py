"""Names of heads: "layer 2, head 3" in sentences and titles, "2.3" in cells, lists and legends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from charts.toolkit.words import _
from transformer.text.message import N_

if TYPE_CHECKING:
    from transformer.runs.head_places import Head

_IN_SHORT = {
    ("encoder", "self"): N_("encoder {layer}.{head}"),
    ("decoder", "self"): N_("decoder {layer}.{head}"),
    ("decoder", "cross"): N_("cross {layer}.{head}"),
}


def layer_name(layer: int) -> str:
    """Return "layer 2" in the reader's language."""
    return _("layer {layer}", layer=layer)


def head_name(layer: int, head: int) -> str:
    """Return "layer 2, head 3" in the reader's language."""
    return _("layer {layer}, head {head}", layer=layer, head=head)


def head_in_short(head: Head) -> str:
    """Return "cross 2.3" in the reader's language."""
    return _(_IN_SHORT[head.stack, head.kind], layer=head.layer, head=head.head)
