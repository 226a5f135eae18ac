"""Scripts of the figures, bundled from ``charts/canvas/source`` by ``npm run build``.

A figure reads the bytes of ``charts.toolkit.payload_bytes`` and handles pointer and keyboard by itself, so that the
app, a notebook and a file show the same figure. It contacts no host.
"""

import json
import zlib
from functools import cache
from pathlib import Path

from charts.toolkit import style

FOLDER = Path(__file__).parent


def canvas_colours() -> dict[str, object]:
    """Return the constant ``COLOURS``, with which every script of a figure begins."""
    return {
        "sequential": style.SEQUENTIAL,
        "diverging": style.DIVERGING,
        "diverging_on_dark": style.DIVERGING_ON_DARK,
        "print": style.PRINT,
        "categorical": style.CATEGORICAL,
        "chosen": style.CHOSEN,
    }


@cache
def canvas_module() -> str:
    """Return one ES module: the frame with its style sheet, all figures, and Streamlit's entry."""
    return f"const COLOURS = {json.dumps(canvas_colours())};\n{_read('canvas')}//# sourceURL=glassformer_canvas.js"


@cache
def packed_module() -> bytes:
    """Return ``canvas_module``, deflated to a quarter of its size."""
    return zlib.compress(canvas_module().encode("utf-8"), level=9)


def loader_script() -> str:
    """Return the script of all components of figures: it loads the modules once and draws."""
    return _read("loader")


def by_hand_script() -> str:
    """Return the script of the sheet on the page By hand, which computes a forward pass in the browser."""
    return _read("by_hand")


@cache
def packed_pdf_writer() -> bytes:
    """Return the PDF writer (jsPDF, svg2pdf.js, an embedded font), deflated."""
    return zlib.compress(_read("pdf").encode("utf-8"), level=9)


def _read(name: str) -> str:
    return (FOLDER / f"{name}.bundle.js").read_text(encoding="utf-8")
