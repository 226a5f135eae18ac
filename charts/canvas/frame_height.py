"""Height of a figure's frame in a notebook.

A frame cannot grow with its content, so its height is computed here, for a notebook about 900 pixels wide. If that is
too small, the page scrolls, and the frame can be resized.
"""

import math
from collections.abc import Mapping
from typing import Any

_AROUND = 96  # pixels for the title with its buttons, and for the page's margins
_LEGEND = 40
_LABELS = 110  # slanted labels and the title above them
_ROW = 44
_TALLEST = 720


def frame_height(metadata: Mapping[str, Any]) -> int:
    """Return the height in pixels for the ``metadata`` of a figure."""
    if metadata["kind"] in ("steps", "living_picture"):
        return _AROUND + _TALLEST
    if metadata["kind"] == "overview":
        layers = sum(len({tile["layer"] for tile in part["tiles"]}) for part in metadata["parts"])
        return round(_AROUND + _LEGEND + 44 * len(metadata["parts"]) + 110 * layers)
    rows, columns = len(metadata["rows"]), len(metadata["columns"])
    if metadata["kind"] == "lines":
        most = max(rows, columns)
        return round(_AROUND + 2 * _LEGEND + 30 + most * max(17.0, min(32.0, 896 / most)))
    if metadata["kind"] not in ("grid", "heads"):
        return round(_AROUND + min(_TALLEST, _LABELS + _ROW * rows + _LEGEND))
    tiles = metadata["tiles"]
    across = metadata.get("per_line") or max(tile["head"] for tile in tiles) + 1
    in_order = metadata["sorted"] or "per_line" in metadata
    lines = math.ceil(len(tiles) / across) if in_order else len({tile["layer"] for tile in tiles})
    tile = min(128.0, 500 / across) * min(1.5, max(0.6, rows / columns))
    large = min(480, 34 + _LABELS + _ROW * rows)
    return round(_AROUND + _LEGEND + max(large, 24 + lines * (tile + 34)))
