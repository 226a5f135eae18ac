"""Pieces that several figures are made of: stacked panels, rows of bars, hatched masks, heatmap traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts import style

_GAP = 52  # pixels between two panels: room for the upper one's ticks and the lower one's name


def stacked(names: Sequence[str], *, heights: Sequence[float]) -> go.Figure:
    """Panels on top of each other that share their horizontal axis, each named at its upper left."""
    from plotly.subplots import make_subplots

    whole = sum(heights) + _GAP * (len(heights) - 1)
    figure = make_subplots(
        rows=len(names),
        cols=1,
        shared_xaxes=True,
        row_heights=list(heights),
        vertical_spacing=_GAP / whole if len(names) > 1 else 0,
    )
    _name_panels(figure, names)
    return figure


def stacked_height(heights: Sequence[float], *, around: int = 130) -> float:
    """Height in pixels of a figure made by ``stacked``."""
    return sum(heights) + _GAP * (len(heights) - 1) + around


def side_by_side(names: Sequence[str], *, widths: Sequence[float] | None = None, spacing: float = 0.03) -> go.Figure:
    """Panels in a row that share their vertical axis, each named at its upper left."""
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=1,
        cols=len(names),
        shared_yaxes=True,
        column_widths=list(widths) if widths else None,
        horizontal_spacing=spacing,
    )
    _name_panels(figure, names)
    return figure


def _name_panels(figure: go.Figure, names: Sequence[str]) -> None:
    for number, name in enumerate(names, start=1):
        axis = "" if number == 1 else str(number)
        figure.add_annotation(
            text=f"<b>{name}</b>",
            x=0,
            y=1,
            xref=f"x{axis} domain",
            yref=f"y{axis} domain",
            xanchor="left",
            yanchor="bottom",
            yshift=3,
            showarrow=False,
        )


def heatmap(
    values: np.ndarray,
    *,
    hover: str,
    bar: dict[str, Any] | None,
    limit: float | None = None,
    maximum: float = 1.0,
    numbers: bool = False,
    **more: Any,
) -> go.Heatmap:
    """A heatmap trace: diverging from −limit to limit if ``limit`` is given, else sequential from 0 to ``maximum``.

    ``hover`` is what stands above the exact value, with ``%{x}`` and ``%{y}``. ``bar`` is ``style.colour_bar(…)``
    or ``None``. ``numbers`` writes three significant digits into every cell. NaN leaves a cell empty.
    """
    return go.Heatmap(
        z=values,
        zmin=0.0 if limit is None else -limit,
        zmax=maximum if limit is None else limit,
        colorscale=style.colour_scale(style.SEQUENTIAL if limit is None else style.DIVERGING),
        showscale=bar is not None,
        colorbar=bar,
        hovertemplate=f"{hover}<br><b>%{{z:{style.EXACT}}}</b><extra></extra>",
        texttemplate=f"%{{z:{style.SHORT}}}" if numbers else None,
        textfont={"size": style.TICK_SIZE - 1} if numbers else None,
        hoverongaps=False,
        **more,
    )


def bar_rows(
    values: np.ndarray,
    *,
    hover: str,
    colours: str | Sequence[str] = style.BAR,
    labelled: bool = True,
    cut: np.ndarray | None = None,
    **more: Any,
) -> go.Bar:
    """Horizontal bars, row k for ``values[k]``, with three significant digits at the end.

    ``cut`` hatches the bars of what was thrown away. ``hover`` stands above the exact value.
    """
    values = np.asarray(values)
    pattern = None
    if cut is not None:
        pattern = {**style.HATCH, "shape": ["/" if is_cut else "" for is_cut in cut]}
        base = [colours] * len(values) if isinstance(colours, str) else list(colours)
        colours = [style.QUIET if is_cut else colour for colour, is_cut in zip(base, cut, strict=True)]
        pattern = {"shape": pattern["shape"], "size": style.HATCH["size"], "solidity": style.HATCH["solidity"]}
    return go.Bar(
        x=values,
        y=np.arange(len(values)),
        orientation="h",
        marker={"color": colours, "pattern": pattern, "line": {"width": 0}},
        text=[style.three_digits(float(value)) for value in values] if labelled else None,
        textposition="outside" if labelled else None,
        textfont={"size": style.TICK_SIZE},
        cliponaxis=False,
        hovertemplate=f"{hover}<br><b>%{{x:{style.EXACT}}}</b><extra></extra>",
        showlegend=False,
        **more,
    )


def mask_bars(masked: np.ndarray, *, low: float, high: float, **more: Any) -> go.Bar:
    """Hatched columns from ``low`` to ``high`` where ``masked`` is true: no value's colour, the whole height."""
    places = np.flatnonzero(masked)
    return go.Bar(
        x=places,
        y=np.full(len(places), high - low, dtype=np.float32),
        base=low,
        width=1.0,
        marker={"color": "rgba(128,128,128,0.10)", "pattern": style.HATCH, "line": {"width": 0}},
        name="masked: it may not look there",
        hovertemplate="%{x}: masked, it may not look there<extra></extra>",
        **more,
    )


def room(values: np.ndarray, *, share: float = 0.16) -> list[float]:
    """The range of an axis of signed bars with labels outside their ends: 0 is in it, and room on both used sides."""
    low, high = min(0.0, float(np.nanmin(values))), max(0.0, float(np.nanmax(values)))
    span = (high - low) or 1.0
    return [low - share * span if low < 0 else 0.0, high + share * span if high > 0 or low == 0 else 0.0]


def signed_colours(values: np.ndarray) -> list[str]:
    """The colour of each bar by its sign."""
    return [style.POSITIVE if value >= 0 else style.NEGATIVE for value in values]
