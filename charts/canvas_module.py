"""The drawings of attention as one script each, put together from the hand-written files in ``charts/canvas``.

A drawing reads the bytes of ``charts.payload_bytes`` and answers the pointer and the keyboard by itself, so that the
app, a notebook and a file on a disk show the very same picture. Nothing in it asks any host for anything.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from functools import cache
from pathlib import Path

from charts import style

FOLDER = Path(__file__).parent / "canvas"
_FRAME = (
    *("words", "payload", "colour", "elements", "text", "heatmap_layout", "heatmap", "legend", "describe"),
    *("svg_pen", "paper_form", "files", "export_menu", "frame", "stage"),
)
# What is drawn -> the class that draws it, and the files that it needs on top of the frame.
_DRAWINGS = {
    "map": ("MapDrawing", ("map",)),
    "mask": ("MaskDrawing", ("map", "mask")),
    "grid": ("GridDrawing", ("grid",)),
    "lines": ("LinesDrawing", ("head_chips", "lines")),
    "steps": ("StepsDrawing", ("walk", "steps")),
}
DRAWINGS = tuple(_DRAWINGS)
_COMMENT = re.compile(r"^\s*//.*$|^\s+", re.MULTILINE)


def scripts(*names: str) -> str:
    """Files of this folder, one after the other, without what is only for their readers: comments, indentation."""
    code = _COMMENT.sub("", "\n".join(_read(f"{name}.js") for name in names))
    return "\n".join(line for line in code.splitlines() if line)


@cache
def canvas_module(drawing: str) -> str:
    """One ES module: the frame with its style sheet, one of ``DRAWINGS``, and the entry that Streamlit calls."""
    class_name, files = _DRAWINGS[drawing]
    colours = {
        "sequential": style.SEQUENTIAL,
        "diverging": style.DIVERGING,
        "categorical": style.CATEGORICAL,
        "chosen": style.CHOSEN,
    }
    own_style = _read("steps.css") if drawing == "steps" else ""
    constants = {"COLOURS": colours, "STYLE": _read("canvas.css") + own_style, "PAGE": _read("page.html")}
    before = [f"const {name} = {_as_script(value)};" for name, value in constants.items()]
    parts = scripts(*_FRAME, *files, "page", "entry")
    return "\n".join([*before, parts, f"const Drawing = {class_name};", f"//# sourceURL=glassformer_{drawing}.js"])


@cache
def packed_module(drawing: str) -> bytes:
    """``canvas_module``, deflated: a quarter of its size."""
    return zlib.compress(canvas_module(drawing).encode("utf-8"), level=9)


def with_module(drawing: str, payload: bytes) -> bytes:
    """The payload and the script that draws it, for ``loader``: payload | deflated script | uint32 its length.

    Streamlit sends a component's script along with every new picture, as text. As bytes it is a quarter shorter than
    deflated and written in letters.
    """
    packed = packed_module(drawing)
    return payload + packed + struct.pack("<I", len(packed))


def loader() -> str:
    """The few lines that Streamlit gets as the component's script; they find the rest in the bytes (``load.js``)."""
    return scripts("load")


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _as_script(value: object) -> str:
    """As a literal that may also stand inside a <script> element."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
