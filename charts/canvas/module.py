"""The drawings of attention as one script, put together from the hand-written files in ``charts/canvas``.

A drawing reads the bytes of ``charts.toolkit.payload_bytes`` and follows the pointer and the keyboard by itself, so
that the app, a notebook and a file on a disk show the very same picture. Nothing in it asks any host for anything.
"""

from __future__ import annotations

import json
import re
import zlib
from functools import cache
from pathlib import Path

from charts.toolkit import style

FOLDER = Path(__file__).parent
_FILES = (
    *("words", "inflate", "payload", "colour", "elements", "text", "heatmap_layout", "heatmap", "legend", "describe"),
    *("svg_pen", "paper_form", "files", "export_menu", "frame", "stage"),
    *("map", "mask", "grid", "head_chips", "lines", "walk", "steps", "entry", "page"),
)
_COMMENT = re.compile(r"^\s*//.*$|^\s+", re.MULTILINE)


def scripts(*names: str) -> str:
    """Files of this folder, one after the other, without comments and indentation."""
    code = _COMMENT.sub("", "\n".join(_read(f"{name}.js") for name in names))
    return "\n".join(line for line in code.splitlines() if line)


@cache
def canvas_module() -> str:
    """One ES module: the frame with its style sheet, all drawings, and the entry that Streamlit calls."""
    colours = {
        "sequential": style.SEQUENTIAL,
        "diverging": style.DIVERGING,
        "categorical": style.CATEGORICAL,
        "chosen": style.CHOSEN,
    }
    constants = {"COLOURS": colours, "STYLE": _read("canvas.css") + _read("steps.css"), "PAGE": _read("page.html")}
    before = [f"const {name} = {_as_script(value)};" for name, value in constants.items()]
    return "\n".join([*before, scripts(*_FILES), "//# sourceURL=glassformer_canvas.js"])


@cache
def packed_module() -> bytes:
    """``canvas_module``, deflated: a quarter of its size."""
    return zlib.compress(canvas_module().encode("utf-8"), level=9)


def carrier() -> str:
    """The script of the component that brings ``packed_module`` to a tab of the browser, once."""
    return scripts("shared", "inflate", "carrier")


def picture() -> str:
    """The script of every picture: Streamlit sends it along with each, so it only waits for the module."""
    return scripts("shared", "picture")


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _as_script(value: object) -> str:
    """As a literal that may also stand inside a <script> element."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
