"""A spectrogram, and below it on the same axis of time where each token attends in the sound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_index
from charts.toolkit.numbers import whole
from charts.toolkit.sheet import Sheet, stack_panels, stacked_height
from charts.toolkit.words import _

_SPECTROGRAM, _GAP, _TITLE = 150, 106, 42  # pixels; a title has two lines
_TICKS = (250, 500, 1000, 2000, 4000, 7000)  # Hz
_GREYS = [[0.0, "#14161a"], [1.0, "#f4f4f0"]]
_LOOKED_AT = [[0.0, "rgba(255,106,0,0)"], [1.0, "rgba(255,106,0,0.7)"]]


def spectrogram_figure(spectrogram: Any, *, frame_seconds: float, centres: Sequence[float]) -> go.Figure:
    """Draw a log-mel spectrogram, [mel band, frame], over time in seconds.

    Args:
        spectrogram: What the model reads.
        frame_seconds: Seconds from one frame to the next.
        centres: Frequency of each band, in Hz.
    """
    figure = Sheet()
    _add_spectrogram(figure, _numbers_of(spectrogram, centres), frame_seconds, centres)
    style.finish(figure, height=_SPECTROGRAM + 90, top=16)
    figure.update_xaxes(title_text=_("time in seconds"), showgrid=False, zeroline=False)
    return figure.drawn()


def sound_map(
    spectrogram: Any,
    *,
    weights: Any,
    frame_seconds: float,
    column_seconds: float,
    centres: Sequence[float],
    rows: Sequence[str],
    row_title: str,
    chosen_row: int,
    title: str,
) -> go.Figure:
    """Draw a spectrogram, coloured where the chosen row attends, and the map of all rows below it.

    Args:
        spectrogram: What the model reads, [mel band, frame].
        weights: Share of its attention that each row pays to each column of time, [row, column].
        frame_seconds: Seconds from one frame to the next.
        column_seconds: Seconds in a column of the map.
        centres: Frequency of each band, in Hz.
        rows: Labels of the rows.
        row_title: Name of the rows.
        chosen_row: The row that colours the spectrogram.
        title: Name of the map.
    """
    frames = _numbers_of(spectrogram, centres)
    shares = as_array(weights, name="weights", axes=("row", "column"), sizes={"row": len(rows)}, signed=False)
    require_index(chosen_row, name="chosen_row", size=len(rows))
    largest = float(shares.max(initial=0.0)) or 1.0
    map_height = style.rows_height(len(rows), around=0)
    heights = [_SPECTROGRAM, map_height]
    names = [_("log-mel spectrogram, coloured where {row} attends", row=style.escape(rows[chosen_row])), title]
    # On one line, a title would be wider than a phone's screen.
    figure = stack_panels([name.replace(", ", ",<br>", 1) for name in names], heights=heights, gap=_GAP)
    _add_spectrogram(figure, frames, frame_seconds, centres)
    row = shares[chosen_row]
    columns = {"x0": column_seconds / 2, "dx": column_seconds}
    figure.add_trace(
        {
            "type": "heatmap",
            "z": np.repeat(row[None], 2, axis=0),
            **columns,
            "y": [-0.5 + len(frames) / 4, -0.5 + 3 * len(frames) / 4],
            "zmin": 0.0,
            "zmax": float(row.max(initial=0.0)) or 1.0,
            "colorscale": _LOOKED_AT,
            "showscale": False,
            "hovertemplate": style.hover("%{x:.2f} s", style.exact("z")),
        },
        row=1,
    )
    figure.add_trace(
        parts.heatmap(
            shares,
            hover=style.lines("%{y}", "%{x:.2f} s", _("share of its attention")),
            bar=style.colour_bar(_("share of its attention"), y=(map_height + _TITLE) / (sum(heights) + _GAP)),
            maximum=largest,
            **columns,
        ),
        row=2,
    )
    style.finish(figure, height=stacked_height(heights, around=96, gap=_GAP), top=46)
    end = len(row) * column_seconds
    figure.update_xaxes(showgrid=False, zeroline=False, range=[0.0, end])
    figure.update_xaxes(title_text=_("time in seconds"), row=2)
    figure.update_yaxes(**style.label_rows(rows, title=row_title), row=2)
    ends = {"x0": 0.0, "x1": end, "y0": chosen_row - 0.5, "y1": chosen_row + 0.5}
    figure.add_shape(type="rect", xref="x2", yref="y2", **ends, line={"color": style.CHOSEN, "width": 2})
    return figure.drawn()


def _numbers_of(spectrogram: Any, centres: Sequence[float]) -> np.ndarray:
    return as_array(spectrogram, name="spectrogram", axes=("mel band", "frame"), sizes={"mel band": len(centres)})


def _add_spectrogram(figure: Sheet, frames: np.ndarray, frame_seconds: float, centres: Sequence[float]) -> None:
    figure.add_trace(
        {
            "type": "heatmap",
            "z": frames,
            "x0": frame_seconds / 2,
            "dx": frame_seconds,
            "zmin": float(frames.min()),
            "zmax": float(frames.max()),
            "colorscale": _GREYS,
            "showscale": False,
            "hovertemplate": style.hover("%{x:.2f} s", style.exact("z")),
        },
        row=1,
    )
    bands = np.arange(len(centres))
    ticks = [tick for tick in _TICKS if centres[0] <= tick <= centres[-1]]
    figure.update_yaxes(
        title_text=_("frequency in Hz"),
        tickmode="array",
        tickvals=[float(np.interp(tick, centres, bands)) for tick in ticks],
        ticktext=[whole(tick) for tick in ticks],
        showgrid=False,
        zeroline=False,
        range=[-0.5, len(centres) - 0.5],
        row=1,
    )
