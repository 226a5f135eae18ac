"""Files from figures: SVG and PNG made in the browser (Plotly) or on the server (Altair), HTML that works offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
_plotly_buttons = st.components.v2.component(
    "glassformer_plotly_export",
    css=(_HERE / "figure_export.css").read_text(encoding="utf-8"),
    js=(_HERE / "figure_export.js").read_text(encoding="utf-8"),
)


def figure_kind(figure: Any) -> str:
    """ "plotly" or "altair". Raises ``TypeError`` for anything else."""
    package = type(figure).__module__.split(".", 1)[0]
    if package not in ("plotly", "altair"):
        raise TypeError(
            f"show_figure takes a Plotly or Altair figure, not {type(figure).__module__}.{type(figure).__name__}"
        )
    return package


def self_contained_html(figure: Any) -> bytes:
    """A page that shows the figure without any other file or host: the drawing library is inside."""
    if figure_kind(figure) == "plotly":
        html = figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False, "responsive": True})
    else:
        html = figure.to_html(inline=True)
    return html.encode("utf-8")


def svg_and_png_buttons(figure: Any, *, kind: str, name: str) -> None:
    """Buttons that save the figure as it is on the screen."""
    if kind == "plotly":
        _plotly_buttons(key=f"pictures-{name}", data={"container": f"st-key-figure-{name}"})
        return
    for extension, mime in (("svg", "image/svg+xml"), ("png", "image/png")):
        st.download_button(
            extension.upper(),
            data=lambda extension=extension: _altair_picture(figure, extension),
            file_name=f"{name}.{extension}",
            mime=mime,
            type="tertiary",
            key=f"{extension}-{name}",
            on_click="ignore",
        )


def _altair_picture(figure: Any, extension: str) -> bytes:
    import vl_convert

    specification = figure.to_json()
    if extension == "svg":
        return vl_convert.vegalite_to_svg(specification).encode("utf-8")
    return vl_convert.vegalite_to_png(specification, scale=2)
