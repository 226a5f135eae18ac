"""A figure of the canvas: mounted by the app, shown by a notebook, saved as a page that works offline.

Token text is in the bytes, as base64, and is drawn with ``fillText`` or set as ``textContent``: it is never markup. The
page's policy blocks all traffic: no host is contacted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from charts.canvas.module import FOLDER, packed_module
from charts.toolkit.payload_bytes import pack

_FRAME, _AROUND, _ROW = 680, 250, 44  # pixels: a notebook's frame, and what a map of few rows needs of it
_PLACE = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, eq=False)
class CanvasFigure:
    """An interactive figure.

    ``metadata`` is JSON: kind, title, labels. ``arrays`` are uint8, uint16 or float32. Both are packed where the figure
    is shown: by the app (``ui.show.drawings``), or here, for a notebook or a file.
    """

    metadata: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]

    def with_metadata(self, **more: object) -> CanvasFigure:
        """Return the same figure with ``more`` metadata, e.g. its captions in another language."""
        return CanvasFigure({**self.metadata, **more}, self.arrays)

    def packed(self) -> bytes:
        """Return the bytes that the browser reads; ``charts.toolkit.payload_bytes`` defines their layout."""
        return pack(self.metadata, self.arrays)

    def html(self) -> str:
        """Return the whole page, which needs no other file and no host."""
        values = {
            "title": escape(self.metadata["title"]),
            "language": "en",
            "payload": base64.b64encode(self.packed()).decode("ascii"),
            "script": base64.b64encode(packed_module()).decode("ascii"),
        }
        template = (FOLDER / "page.html").read_text(encoding="utf-8")
        return _PLACE.sub(lambda place: values[place[1]], template)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to ``path``, e.g. ``"attention.html"``, completely or not at all; return its path."""
        file = Path(path)
        unfinished = file.with_name(f".{file.name}.unfinished")
        unfinished.write_text(self.html(), encoding="utf-8")
        unfinished.replace(file)
        return file

    def __repr__(self) -> str:
        return f"CanvasFigure({self.metadata['kind']}; a notebook shows it, save() writes a page)"

    def _repr_html_(self) -> str:
        """Return an ``iframe`` with the page, which may only run scripts and save files; it scrolls if needed."""
        rows = len(self.metadata["rows"]) if self.metadata["kind"] in ("map", "mask", "lines") else _FRAME
        attributes = {
            "title": self.metadata["title"],
            "sandbox": "allow-scripts allow-downloads",
            "style": f"width:100%;height:{min(_FRAME, _AROUND + _ROW * rows)}px;border:0;resize:vertical",
            "srcdoc": self.html(),
        }
        return "<iframe " + " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items()) + "></iframe>"
