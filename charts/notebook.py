"""The attention canvas in a notebook: hover, zoom, switch heads and export without a server, offline.

    view = trace.attention("decoder", layer=2, kind="cross")
    view  # all heads small, the one under the pointer large
    attention_map(view, head=3)  # one head, exact to the last digit
    attention_lines(view).save("lines.html")

What these functions return shows itself as the last value of a cell, in a frame of its own (an ``iframe`` with the
whole page in it, and no rights but to run and to save), so that nothing in it can meet the rest of the notebook.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path

import numpy as np

from charts.canvas.attention_payload import attention_grid_payload, attention_lines_payload, attention_map_payload
from charts.canvas.standalone_page import canvas_page
from charts.canvas.value_map_payload import value_map_payload
from charts.toolkit.payload_bytes import unpack
from transformer.runs.attention_view import AttentionView

_AROUND = 96  # pixels: the title with its buttons, and the page's margins
_LEGEND = 40
_LABELS = 110  # slanted labels and the title above them
_TALLEST = 720


@dataclass(frozen=True)
class CanvasFigure:
    """A drawing that shows itself in a notebook. ``height`` of its frame is in pixels."""

    payload: bytes
    height: int

    def __repr__(self) -> str:
        kind = unpack(self.payload)[0]["kind"]
        return f"CanvasFigure({kind}, {len(self.payload):,} bytes; a notebook shows it, save() writes a page)"

    def _repr_html_(self) -> str:
        metadata, _ = unpack(self.payload)
        attributes = {
            "title": metadata["title"],
            "sandbox": "allow-scripts allow-downloads",
            "style": f"width:100%;height:{self.height}px;border:0;resize:vertical",
            "srcdoc": self.html(),
        }
        return "<iframe " + " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items()) + "></iframe>"

    def html(self) -> str:
        """The whole page, which needs no other file and no host."""
        return canvas_page(self.payload)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to ``path``, e.g. ``"attention.html"``; returns where it is."""
        file = Path(path)
        file.write_text(self.html(), encoding="utf-8")
        return file


def attention_heads(view: AttentionView) -> CanvasFigure:
    """All heads of one layer as small maps in rows, the one under the pointer large beside them; a click keeps it."""
    per_line = math.ceil(math.sqrt(view.n_heads))
    payload = attention_grid_payload([view], per_line=per_line)
    return CanvasFigure(payload, _grid_height(math.ceil(view.n_heads / per_line), per_line, view))


def attention_grid(
    views: Sequence[AttentionView],
    *,
    selected: tuple[int, int] | None = None,
    captions: Mapping[tuple[int, int], str] | None = None,
    order: Sequence[tuple[int, int]] | None = None,
) -> CanvasFigure:
    """All heads of several layers, one view per layer, as ``ui.show.canvas.attention_grid`` draws them."""
    payload = attention_grid_payload(views, selected=selected, captions=captions, order=order)
    return CanvasFigure(payload, _grid_height(len(views), max(view.n_heads for view in views), views[0]))


def attention_map(
    view: AttentionView, *, head: int, stretch: bool = False, selected: tuple[int, int] | None = None
) -> CanvasFigure:
    """One head, every weight exact. ``stretch`` ends the scale at the largest weight; ``selected``: (query, key)."""
    payload = attention_map_payload(view, head=head, stretch=stretch, selected=selected)
    return CanvasFigure(payload, _map_height(len(view.query)))


def attention_lines(view: AttentionView, *, heads: Sequence[int] | None = None) -> CanvasFigure:
    """Two columns of tokens with a line for every weight; ``heads`` are switched on at first (default: all)."""
    most = max(len(view.query), len(view.key))
    line = max(17.0, min(32.0, 896 / most))
    payload = attention_lines_payload(view, heads=heads)
    return CanvasFigure(payload, round(_AROUND + 2 * _LEGEND + 30 + most * line))


def value_map(
    values: np.ndarray,
    *,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    row_title: str = "row",
    column_title: str = "column",
    scale: str = "diverging",
    title: str = "values",
    value_name: str = "value",
    allowed: np.ndarray | None = None,
) -> CanvasFigure:
    """Any labelled matrix [row, column], e.g. ``view.scores[head]``; see ``charts.canvas.value_map_payload``."""
    payload = value_map_payload(
        values,
        row_labels=row_labels,
        column_labels=column_labels,
        row_title=row_title,
        column_title=column_title,
        scale=scale,
        title=title,
        value_name=value_name,
        allowed=allowed,
    )
    return CanvasFigure(payload, _map_height(len(row_labels)))


# A frame cannot grow with what is in it, so its height is worked out here, for a notebook about 900 pixels wide; where
# that is too little, the page scrolls, and the frame can be pulled larger.


def _map_height(n_rows: int) -> int:
    return round(_AROUND + min(_TALLEST, _LABELS + 44 * n_rows + _LEGEND))


def _grid_height(lines: int, per_line: int, view: AttentionView) -> int:
    tile = min(128.0, 500 / per_line)
    shape = min(1.5, max(0.6, len(view.query) / len(view.key)))
    large = min(480, 34 + _LABELS + 44 * len(view.query))
    return round(_AROUND + _LEGEND + max(large, 24 + lines * (tile * shape + 34)))
