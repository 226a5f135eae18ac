"""Files from figures: images, a page that works offline, CSV.

Images are made in the browser (Plotly) or on the server (Altair). Neither scripts nor files are sent before the menu is
open, so they cost a run of the page nothing.
"""

import base64
import time
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from charts.toolkit.figure_table import figure_table
from charts.toolkit.paper import PRINT, paper_svg
from charts.toolkit.style import SEQUENTIAL
from ui.shell.events import component, measure, nothing
from ui.shell.frame import provenance
from ui.show.csv_files import as_csv
from ui.words.catalogues import browser_words
from ui.words.texts import common

_HERE = Path(__file__).parent
_pictures = component("figure_export", _HERE / "exports.bundle.js")
_saver = component("save_file", _HERE / "save_file.bundle.js")
_FORMATS = ("png", "svg", "pdf")


def figure_kind(figure: Any) -> str:
    """Return "plotly" or "altair".

    Raises:
        TypeError: For anything else.
    """
    package = type(figure).__module__.split(".", 1)[0]
    if package not in ("plotly", "altair"):
        raise TypeError(
            f"show_figure takes a Plotly or Altair figure, not {type(figure).__module__}.{type(figure).__name__}"
        )
    return package


def self_contained_html(figure: Any, metadata: Mapping[str, str] | None = None) -> bytes:
    """Return a page that shows the figure without any other file or host, including the drawing library.

    ``metadata`` (``ui.shell.frame.provenance``) is in its head as ``<meta name="glassformer:…">``.
    """
    if figure_kind(figure) == "plotly":
        html = figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False, "responsive": True})
    else:
        html = figure.to_html(inline=True)
    tags = "".join(
        f'<meta name="glassformer:{name}" content="{escape(text)}">' for name, text in (metadata or {}).items()
    )
    return html.replace("<head>", f"<head>{tags}", 1).encode("utf-8")


def exports(figure: Any, *, kind: str, name: str, title: str) -> None:
    """Draw the menu of all exports of a figure; ``title`` is the default title of the one for a paper."""
    _picture_buttons(figure, kind, name, title)
    metadata = provenance(title)
    offered = {
        "html": (common("show.html"), "text/html", lambda: self_contained_html(figure, metadata)),
        "csv": (common("show.csv"), "text/csv", lambda: as_csv(figure_table(figure))),
    }
    with st.container(horizontal=True):
        for what, (label, mime, make) in offered.items():
            st.download_button(
                label,
                data=make,  # made on demand, because a page that includes Plotly has 4 MB
                file_name=f"{name}.{what}",
                mime=mime,
                key=f"export {what} {name}",
                on_click="ignore",
            )


def _picture_buttons(figure: Any, kind: str, name: str, title: str) -> None:
    data = {"kind": kind, "name": name, "title": title, "container": f"st-key-figure-{name}", "words": browser_words()}
    data["scales"] = {"sequential": SEQUENTIAL, "print": PRINT}
    wish = _pictures(key=f"pictures {name}", data=data, on_wish_change=nothing).get("wish")
    if kind == "altair" and isinstance(wish, dict) and wish.get("format") in (*_FORMATS, "paper"):
        paper = wish["format"] == "paper"
        wanted = wish.get("as") if paper else wish["format"]
        format = wanted if wanted in _FORMATS else "svg"
        file = f"{name}-{_millimetres(wish):g}-mm.{format}" if paper else f"{name}.{format}"
        content = base64.b64encode(_altair_picture(figure, wish)).decode("ascii")
        file_title = str(wish.get("title") or title)[:500]
        saved = {"id": time.time_ns(), "name": file, "title": file_title, "format": format, "bytes": content}
        _saver(key=f"saver {name}", data=saved)


def _millimetres(wish: dict) -> float:
    """Return the width on paper, limited to that of a printed page."""
    return measure(wish.get("millimetres"), 84, least=20, most=400)


def _altair_picture(figure: Any, wish: dict) -> bytes:
    """Return PNG or SVG."""
    import vl_convert

    if wish["format"] == "paper":
        points = measure(wish.get("points"), 8, least=4, most=40)
        title = str(wish.get("title") or "")[:500]
        return paper_svg(figure, title=title, millimetres=_millimetres(wish), points=points).encode("utf-8")
    specification = figure.to_json()
    if wish["format"] == "png":
        return vl_convert.vegalite_to_png(specification, scale=2)
    return vl_convert.vegalite_to_svg(specification).encode("utf-8")  # the browser converts it to PDF
