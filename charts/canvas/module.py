"""The drawings of attention as one script: ``charts/canvas/source`` bundled by ``npm run build``, see ``docs/code.md``.

A drawing reads the bytes of ``charts.toolkit.payload_bytes`` and follows the pointer and the keyboard by itself, so
that the app, a notebook and a file on a disk show the very same picture. Nothing in it asks any host for anything.
"""

import json
import zlib
from functools import cache
from pathlib import Path

from charts.toolkit import paper, style

FOLDER = Path(__file__).parent


def canvas_colours() -> dict[str, object]:
    """The constant ``COLOURS`` of the drawings: every script with a drawing in it begins with it."""
    return {
        "sequential": style.SEQUENTIAL,
        "diverging": style.DIVERGING,
        "print": paper.PRINT,
        "categorical": style.CATEGORICAL,
        "chosen": style.CHOSEN,
    }


@cache
def canvas_module() -> str:
    """One ES module: the frame with its style sheet, all drawings, and the entry that Streamlit calls."""
    return f"const COLOURS = {json.dumps(canvas_colours())};\n{_read('canvas')}//# sourceURL=glassformer_canvas.js"


@cache
def packed_module() -> bytes:
    """``canvas_module``, deflated: a quarter of its size."""
    return zlib.compress(canvas_module().encode("utf-8"), level=9)


def carrier() -> str:
    """The script of the component that brings ``packed_module`` to a tab of the browser, once."""
    return _read("carrier")


def picture() -> str:
    """The script of every picture: Streamlit sends it along with each, so it only waits for the module."""
    return _read("picture")


def painted() -> str:
    """The script of the component that says when the first picture of a tab is painted."""
    return _read("painted")


@cache
def packed_pdf_writer() -> bytes:
    """What makes a PDF of an SVG (jsPDF, svg2pdf.js and an embedded font), deflated, for ``pdf_carrier``."""
    return zlib.compress(_read("pdf").encode("utf-8"), level=9)


def pdf_carrier() -> str:
    """The script of the component that brings ``packed_pdf_writer`` to a tab of the browser when it is asked for."""
    return _read("pdf_carrier")


def _read(name: str) -> str:
    return (FOLDER / f"{name}.bundle.js").read_text(encoding="utf-8")
