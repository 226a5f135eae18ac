"""Files from figures, tables and pages: images, a page that works offline, CSV, documents.

Images are made on the server (Altair), or by Plotly's own camera: PNG on the page, SVG in the saved page. A file is
made when somebody asks for it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from charts.documents.document import document
from charts.documents.document_parts import Part
from charts.toolkit.figure_table import figure_table
from transformer.disk.tables import harmless_cell
from ui.words.texts import browser_words, common, language


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


def self_contained_html(figure: Any) -> bytes:
    """Return a page that shows the figure without any other file or host, including the drawing library."""
    if figure_kind(figure) == "plotly":
        config = {"displaylogo": False, "responsive": True, "toImageButtonOptions": {"format": "svg"}}
        html = figure.to_html(include_plotlyjs=True, full_html=True, config=config)
    else:
        html = figure.to_html(inline=True)
    return html.encode("utf-8")


def exports(figure: Any, *, kind: str, name: str) -> None:
    """Draw the menu of all exports of a figure."""
    # Files are made on demand: a page that includes Plotly has 4 MB.
    offered: dict[str, tuple[str, str, Callable[[], bytes]]] = {
        "html": (common("show.html"), "text/html", lambda: self_contained_html(figure)),
        "csv": (common("show.csv"), "text/csv", lambda: as_csv(figure_table(figure))),
    }
    if kind == "altair":
        offered = {
            "png": ("PNG", "image/png", lambda: _altair_picture(figure, "png")),
            "svg": ("SVG", "image/svg+xml", lambda: _altair_picture(figure, "svg")),
            **offered,
        }
    with st.container(horizontal=True):
        for what, (label, mime, make) in offered.items():
            st.download_button(
                label,
                data=make,
                file_name=f"{name}.{what}",
                mime=mime,
                key=f"export {what} {name}",
                on_click="ignore",
            )


def _altair_picture(figure: Any, format: str) -> bytes:
    import vl_convert

    if format == "png":
        return vl_convert.vegalite_to_png(figure.to_json(), scale=2)
    return vl_convert.vegalite_to_svg(figure.to_json()).encode("utf-8")


def as_csv(table: pd.DataFrame) -> bytes:
    """Return UTF-8 with a header in which no cell is a formula (``harmless_cell``); numbers stay numbers."""
    return table.map(harmless_cell).rename(columns=harmless_cell).to_csv(index=False).encode("utf-8")


def document_of(title: str, parts: Sequence[Part], **more: Any) -> str:
    """Build a document in the reader's language; the arguments are those of ``document``."""
    return document(title, parts, language=language(), words=browser_words(), **more)
