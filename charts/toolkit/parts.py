"""Building blocks of several figures: heatmaps, numbers in cells, rows of bars, hatched masks, ranges."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from charts.toolkit import shades, style
from charts.toolkit.sheet import bar, scatter
from charts.toolkit.words import say

# Plotly's uniformtext: numbers of one size, or none rather than tiny ones.
NUMBERS_ALIKE = {"minsize": style.TICK_SIZE - 2, "mode": "hide"}


def heatmap(
    values: np.ndarray,
    *,
    hover: str,
    bar: dict[str, Any] | None,
    limit: float | None = None,
    maximum: float = 1.0,
    **more: Any,
) -> dict[str, Any]:
    """Return a heatmap trace: from −limit to limit if ``limit`` is given, else from 0 to ``maximum``.

    ``hover`` is the text above the exact value, with ``%{x}`` and ``%{y}``. ``bar`` is ``style.colour_bar(…)`` or
    ``None``. NaN leaves a cell empty. Cells that are too narrow for gaps (``xgap``, ``ygap``) have none.
    """
    n_rows, n_columns = np.shape(values)
    for gap, count in (("ygap", n_rows), ("xgap", n_columns)):
        if count > style.MAX_ROWS:
            more.pop(gap, None)
    return dict(
        type="heatmap",
        z=values,
        zmin=0.0 if limit is None else -limit,
        zmax=maximum if limit is None else limit,
        colorscale=style.colour_scale(style.SEQUENTIAL if limit is None else style.DIVERGING),
        showscale=bar is not None,
        colorbar=bar,
        hovertemplate=f"{hover}<br><b>%{{z:{style.EXACT}}}</b><extra></extra>",
        hoverongaps=False,
        **more,
    )


def cell_texts(trace: Mapping[str, Any], *, texts: Sequence[Sequence[str]] | None = None) -> dict[str, Any]:
    """Return the text in every cell of a heatmap (three digits by default), in a readable black or white.

    It is a trace of its own, because Plotly's cell text has a dark grey that is illegible on middle tones.
    """
    values = np.asarray(trace["z"])
    colours = style.SEQUENTIAL if trace["zmin"] == 0 else style.DIVERGING
    places = [(row, column) for row, column in np.ndindex(values.shape) if np.isfinite(values[row, column])]
    shares = [(values[place] - trace["zmin"]) / (trace["zmax"] - trace["zmin"]) for place in places]
    return scatter(
        x=[column for _, column in places],
        y=[row for row, _ in places],
        mode="text",
        text=[
            texts[row][column] if texts else style.three_digits(values[row, column].item()) for row, column in places
        ],
        textfont={"size": style.TICK_SIZE, "color": [shades.ink(share, colours=colours) for share in shares]},
        hoverinfo="skip",
    )


def bar_rows(
    values: np.ndarray,
    *,
    hover: str,
    colours: str | Sequence[str] = style.BAR,
    cut: np.ndarray | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return horizontal bars, row k for ``values[k]``, with three digits at the end if they fit.

    ``cut`` hatches the bars of excluded values and marks them at their end. ``hover`` is the text above the exact
    value.
    """
    values = np.asarray(values)
    texts = [style.three_digits(float(value)) for value in values]
    pattern = None
    if cut is not None:
        base = [colours] * len(values) if isinstance(colours, str) else list(colours)
        colours = [style.MASKED if is_cut else colour for colour, is_cut in zip(base, cut, strict=True)]
        pattern = {"shape": ["/" if is_cut else "" for is_cut in cut], "size": 8, "solidity": 0.3}
        texts = [say("cut_value", value=text) if is_cut else text for text, is_cut in zip(texts, cut, strict=True)]
    return bar(
        x=values,
        y=np.arange(len(values)),
        orientation="h",
        marker={"color": colours, "pattern": pattern, "line": {"width": 0}},
        text=texts if len(texts) <= style.MAX_LABELS else None,
        textposition="outside",
        textfont={"size": style.TICK_SIZE},
        cliponaxis=False,
        hovertemplate=f"{hover}<br><b>%{{x:{style.EXACT}}}</b><extra></extra>",
        showlegend=False,
        **more,
    )


def mask_bars(masked: np.ndarray, *, low: float, high: float, **more: Any) -> dict[str, Any]:
    """Return hatched columns from ``low`` to ``high`` where ``masked`` is true."""
    places = np.flatnonzero(masked)
    return bar(
        x=places,
        y=np.full(len(places), high - low, dtype=np.float32),
        base=low,
        width=1.0,
        marker={"color": style.MASKED, "pattern": style.HATCH, "line": {"width": 0}},
        name=say("masked"),
        hovertemplate=style.hover(say("masked_token", token="%{x}")),
        **more,
    )


def bar_range(values: np.ndarray, *, share: float = 0.16) -> list[float]:
    """Return the range of an axis of signed bars with labels outside their ends, including 0."""
    low, high = min(0.0, float(np.nanmin(values))), max(0.0, float(np.nanmax(values)))
    span = (high - low) or 1.0
    return [low - share * span if low < 0 else 0.0, high + share * span if high > 0 or low == 0 else 0.0]


def signed_colours(values: np.ndarray) -> list[str]:
    """Return the colour of each bar by its sign."""
    return [style.POSITIVE if value >= 0 else style.NEGATIVE for value in values]
