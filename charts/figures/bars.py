"""Bars with their numbers: in rows, or upright over labelled positions, in one panel or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.axes import Axis
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import GAP, Sheet, stack_panels, stacked_height

_FEW = 20  # upright bars that have room for their numbers
_MANY = 64  # unnamed upright bars that have no room between them


@dataclass(frozen=True)
class Bars:
    """One series of bars.

    Attributes:
        values: Where each bar ends, [position]; NaN for none.
        hover: Text above the exact value, in which ``%{x}``, or ``%{y}`` in a row, is the label; by default the label.
        name: Name in the legend, which lists none without a name.
        colours: One colour, or one for each bar.
        signed: Whether the colours are those of the signs.
        texts: What is written at the ends: by default the numbers, if they fit.
        start: Where every bar begins, if it is not the edge of the panel or 0.
        detail: Texts of each bar for the hover text, ``%{customdata[0]}`` …
    """

    values: Any
    hover: str = ""
    name: str = ""
    colours: str | Sequence[str] = style.BAR
    signed: bool = False
    texts: Sequence[str] | None = None
    start: float | None = None
    detail: Any = None


@dataclass(frozen=True)
class Points:
    """One mark for each position, with or without bars.

    Attributes:
        values: Their heights, [position].
        hover: Text above the exact value.
        name: Name in the legend.
        colour: Colour of the mark.
        symbol: Plotly's name of its shape.
        size: Its size in pixels.
        edge: Colour of its edge, by default the same.
    """

    values: Any
    hover: str
    name: str
    colour: str
    symbol: str = "circle"
    size: float = 11
    edge: str = ""


@dataclass(frozen=True)
class Panel:
    """Upright bars and points of one panel.

    Attributes:
        series: What is drawn.
        up: Title of the vertical axis.
        name: What is written above the panel.
        limits: Range of the vertical axis; by default all that is drawn fits into it.
        masked: Whether each position is masked, hence hatched from one of the ``limits`` to the other, [position].
        joined: Whether a line joins the points of the two series at each position.
        height: Pixels.
    """

    series: Sequence[Bars | Points]
    up: str
    name: str = ""
    limits: Sequence[float] | None = None
    masked: np.ndarray | None = None
    joined: bool = False
    height: float = 190


def bars(
    series: Bars | Sequence[Bars],
    *,
    rows: Axis,
    across: str = "",
    limits: Sequence[float] | None = None,
    height: float = 0,
    label_size: int = style.TICK_SIZE,
    legend: Mapping[str, str] | None = None,
) -> go.Figure:
    """Draw one horizontal bar of each series per row, the first row and the first series on top.

    Titles and names are markup, in which tokens are escaped; labels are escaped here.

    Args:
        series: The bars; a series without a finite number is left out.
        rows: What the rows are.
        across: Title of the axis of values, which is not drawn without a title.
        limits: Its range; by default the bars and their numbers fit into it.
        height: Pixels of the whole figure, by default as the rows need.
        label_size: Pixels of the labels.
        legend: Colours of a single series, by what each means.
    """
    drawn, size, figure = [series] if isinstance(series, Bars) else list(series), len(rows.labels), Sheet()
    arrays = [_values(one, size) for one in drawn]
    for one, values in zip(drawn, arrays, strict=True):
        if np.isfinite(values).any():
            trace = parts.bar_rows(values, hover=one.hover or "%{y}", colours=_colours(one, values))
            more = {"name": one.name, "showlegend": True} if one.name else {}
            more |= {} if one.texts is None else {"text": list(one.texts) or None}
            more |= {} if one.detail is None else {"customdata": one.detail}
            figure.add_trace({**trace, **more})
    for name, colour in (legend or {}).items():
        figure.bar(x=[None], y=[None], name=name, marker={"color": colour})
    several = len(drawn) > 1
    around = 90 if legend else 60 if across else 50
    written = any(trace.get("text") for trace in figure.traces)
    usual = (44 if written else 34) * size + 100 if several else style.rows_height(size, around=around)
    style.finish(figure, height=height or usual, top=40 if several or legend else 24)
    figure.update_layout(margin_r=56, **({"barmode": "group", "bargap": 0.3} if several else {}))
    fitting = parts.bar_range(np.concatenate(arrays), share=0.22)
    figure.update_xaxes(title_text=across, range=fitting if limits is None else list(limits), visible=bool(across))
    figure.update_yaxes(**{**rows.down(size), "tickfont_size": label_size})
    return figure.drawn()


def columns(
    series: Bars | Sequence[Bars | Points],
    *,
    along: Axis,
    up: str,
    limits: Sequence[float] | None = None,
    masked: np.ndarray | None = None,
    joined: bool = False,
    height: float = 190,
) -> go.Figure:
    """Draw upright bars and points over the positions of ``along``, with the settings of one ``Panel``."""
    drawn = [series] if isinstance(series, Bars) else series
    panel = Panel(drawn, up, limits=limits, masked=masked, joined=joined, height=height)
    return small_multiples([panel], along=along)


def small_multiples(panels: Sequence[Panel], *, along: Axis, stacked: bool = False, gap: float = GAP) -> go.Figure:
    """Draw panels of upright bars and points below each other, over the same positions.

    Titles and names are markup, in which tokens are escaped; labels are escaped here.

    Args:
        panels: What is drawn, from the top.
        along: The positions.
        stacked: Whether the bars of one position lie on top of each other, not side by side.
        gap: Pixels between two panels.

    Raises:
        ValueError: If a series does not have one number per position.
    """
    size = len(along.labels) or len(panels[0].series[0].values)
    heights = [panel.height for panel in panels]
    figure = stack_panels([panel.name for panel in panels], heights=heights, gap=gap)
    for row, panel in enumerate(panels, start=1):
        _draw(figure, panel, size=size, row=row)
    _list_once(figure)
    masks = any(panel.masked is not None for panel in panels)
    has_legend = any(trace["showlegend"] for trace in figure.traces)
    style.finish(figure, height=stacked_height(heights, gap=gap, around=110), top=48 if has_legend else 32)
    mode = "overlay" if masks else "relative" if stacked else "group"
    figure.update_layout(
        barmode=mode, bargap=0 if size > _MANY and not along.labels else 0.25, uniformtext=parts.NUMBERS_ALIKE
    )
    if panels[0].name:
        figure.update_layout(legend={"x": 1, "xanchor": "right", "y": 1.02})
    figure.update_xaxes(**{**along.across(size), "title_text": ""})
    figure.update_xaxes(title_text=along.title, row=len(panels))
    return figure.drawn()


def _draw(figure: Sheet, panel: Panel, *, size: int, row: int) -> None:
    arrays = [_values(one, size) for one in panel.series]
    places, has_texts = np.arange(size), False
    if panel.joined:
        ends = [(float(one), float(other), None) for one, other in zip(*arrays, strict=True)]
        figure.scatter(
            x=[x for place in places.tolist() for x in (place, place, None)],
            y=[y for end in ends for y in end],
            mode="lines",
            line={"color": style.QUIET, "width": 2},
            hoverinfo="skip",
            row=row,
        )
    for one, values in zip(panel.series, arrays, strict=True):
        named: dict[str, Any] = {"name": one.name, "legendgroup": one.name, "showlegend": bool(one.name)}
        hover = style.hover(one.hover or "%{x}", style.exact("y"))
        if isinstance(one, Points):
            edge = {"width": 2.5, "color": one.edge or one.colour}
            marker = {"color": one.colour, "symbol": one.symbol, "size": one.size, "line": edge}
            figure.scatter(x=places, y=values, mode="markers", marker=marker, hovertemplate=hover, row=row, **named)
            continue
        texts = one.texts
        if texts is None and size <= _FEW:
            texts = [style.three_digits(float(value)) for value in values]
        has_texts |= bool(texts)
        is_lone = texts is not None and "" in texts  # its number has room
        more: dict[str, Any] = {} if one.detail is None else {"customdata": one.detail}
        if one.start is not None:
            more = {"base": one.start, "customdata": values}
            hover = style.hover(one.hover or "%{x}", style.exact("customdata"))
            figure.add_hline(y=one.start, line={"color": style.NEUTRAL, "width": 1}, row=row)
        figure.bar(
            x=places,
            y=values if one.start is None else values - np.float32(one.start),
            marker={"color": _colours(one, values), "line": {"width": 0}},
            text=list(texts) if texts else None,
            textposition="outside",
            textfont={"size": style.TITLE_SIZE if is_lone else style.TICK_SIZE},
            textangle=0,
            constraintext="none" if is_lone else "both",
            cliponaxis=False,
            hovertemplate=hover,
            row=row,
            **more,
            **named,
        )
    limits = None if panel.limits is None else list(panel.limits)
    if limits is None and has_texts:
        limits = parts.bar_range(np.concatenate(arrays))
    if panel.masked is not None and panel.masked.any() and limits is not None:
        mask = parts.mask_bars(panel.masked, low=limits[0], high=limits[1], showlegend=True)
        figure.add_trace({**mask, "legendgroup": mask["name"]}, row=row)
    figure.update_yaxes(title_text=panel.up, range=limits, row=row)


def _list_once(figure: Sheet) -> None:
    """Let the legend list each name once."""
    listed = set()
    for trace in figure.traces:
        trace["showlegend"] = trace["showlegend"] and trace["name"] not in listed
        listed.add(trace.get("name"))


def _values(one: Bars | Points, size: int) -> np.ndarray:
    return as_array(one.values, name=one.name or "values", axes=("position",), sizes={"position": size})


def _colours(one: Bars, values: np.ndarray) -> str | list[str]:
    if one.signed:
        return parts.signed_colours(values - (one.start or 0))
    if isinstance(one.colours, str):
        return one.colours
    require_same_length("colours", one.colours, expected=len(values), of="bars")
    return list(one.colours)
