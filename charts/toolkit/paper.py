"""An Altair figure for a printed column: vector, white, black letters, a width in millimetres.

Plotly's figures and the canvas get the same in the browser (``ui/show/exports.js`` and
``charts/canvas/source/frame/files.js``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from charts.toolkit.altair_size import scale_specification
from charts.toolkit.style import TEXT_SIZE

if TYPE_CHECKING:
    import altair as alt

# From nothing (nearly white) to much (dark), in equal steps of OKLab, which also works in grey. Print has no dark mode.
PRINT = (
    *("#f5fbff", "#dbeefc", "#c2e0f8", "#a9d3f4", "#90c5f0", "#78b6eb", "#60a7e7", "#4698e2", "#3c89d3", "#377bc0"),
    *("#316cae", "#2b5e9c", "#24518a", "#1e4479", "#173768", "#112b57", "#0a1f47"),
)
FONT = "Helvetica, Arial, sans-serif"
_PER_MILLIMETRE, _PER_POINT = 96 / 25.4, 96 / 72  # CSS pixels
_SIZE = re.compile(r'(<svg\b[^>]*?) width="([\d.]+)" height="([\d.]+)"')


def paper_svg(chart: alt.TopLevelMixin, *, title: str = "", millimetres: float = 84, points: float = 8) -> str:
    """Return ``chart`` as SVG, ``millimetres`` wide, with letters of ``points`` and ``title`` above it.

    Raises:
        ValueError: If a size is not greater than 0.
    """
    if not (millimetres > 0 and points > 0):
        raise ValueError(f"{millimetres} mm with letters of {points} pt: both must be greater than 0")
    import vl_convert

    specification = _specification(chart.to_dict(), title, millimetres * _PER_MILLIMETRE, points * _PER_POINT)
    svg = vl_convert.vegalite_to_svg(specification)
    return _SIZE.sub(lambda found: _to_millimetres(found, millimetres), svg, count=1)


def _specification(specification: Mapping[str, Any], title: str, width: float, size: float) -> dict[str, Any]:
    text = {"font": FONT, "fontSize": size, "color": "#000"}
    labels = {"labelFont": FONT, "titleFont": FONT, "labelColor": "#000", "titleColor": "#000"}
    sizes = {"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal"}
    times = size / TEXT_SIZE
    # About seven letters to twelve of their heights, bold; Vega does not wrap text.
    lines = _wrap(title, most=int(width / (0.56 * size)))
    named = {"title": {"text": lines, "anchor": "start", "frame": "bounds", "offset": size}} if title else {}
    return {
        **scale_specification(specification, times, points=times**2),  # the size of a point is an area
        **named,
        "width": round(width),
        "background": "#FFFFFF",
        "autosize": {"type": "fit-x", "contains": "padding"},  # a title adds to the height
        "padding": 2,
        "config": {
            "title": {**text, "fontWeight": "bold"},
            "axis": {**labels, **sizes, "domainColor": "#000", "tickColor": "#000", "gridColor": "#DDDDDD"},
            "legend": {**labels, **sizes},
            "view": {"stroke": None},
        },
    }


def _wrap(text: str, *, most: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _to_millimetres(found: re.Match, millimetres: float) -> str:
    width, height = float(found[2]), float(found[3])
    box = "" if "viewBox" in found.string[found.start() : found.string.index(">", found.end())] else _box(width, height)
    return f'{found[1]} width="{millimetres:g}mm" height="{millimetres * height / width:.2f}mm"{box}'


def _box(width: float, height: float) -> str:
    return f' viewBox="0 0 {width:g} {height:g}"'
