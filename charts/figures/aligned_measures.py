"""An attention row above attributions of the output to the same tokens: one strip per measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet, stack_panels, stacked_height
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    from transformer.attribution.attention_trust import Aligned, TokenMeasure

NAMES = {
    "head": "this head",
    "heads": "mean of all heads",
    "weighted": "‖α·v‖",
    "rollout": "rollout",
    "gradient_times_input": "gradient × input",
    "integrated_gradients": "integrated gradients",
    "leave_one_out": "leave one out",
}
ROOM = 44  # pixels that a column needs to show its number
_ROW = 34.0
MAX_NUMBERS = 40  # tokens up to which cells show their numbers


def aligned_measures(
    aligned: Aligned, *, answer: str = "the prediction", unit: str = "log p", names: Mapping[str, str] = NAMES
) -> go.Figure:
    """Draw shares of attention (0…1) above signed shares of the output, token under token.

    The colours of each signed row are scaled by its largest absolute value, since the methods differ in scale; the
    numbers in the cells are not scaled and are in ``unit``. On the right is ρ, the rank agreement of each row with
    leaving the token out. A dash means that this token cannot be left out.
    """
    shares = [measure for measure in aligned.measures if not measure.signed]
    signed = [measure for measure in aligned.measures if measure.signed]
    titles = {
        True: say("attention.depends_on", answer=style.escape(localize(answer)), quantity=unit),
        False: say("attention.attention_measures_shares_0_1"),
    }
    panels = [panel for panel in (shares, signed) if panel]
    heights = [_ROW * len(panel) for panel in panels]
    figure = stack_panels([titles[panel[0].signed] for panel in panels], heights=heights, gap=40)
    for row, panel in enumerate(panels, start=1):
        _draw(figure, panel, row=row, names=names)
    style.finish(figure, height=stacked_height(heights, around=112, gap=40), top=40)
    figure.update_layout(margin={"r": 60})
    figure.update_xaxes(**style.label_axis([aligned.tokens.displays[place] for place in aligned.positions], title=""))
    if len(panels) == 2:  # one name for the rows of both halves
        figure.update_yaxes(title_text="", row=2)
    figure.update_xaxes(title_text=say("names.token_read"), row=len(panels))
    figure.add_annotation(
        text="<b>ρ</b>", x=1.0, y=1.0, xref="paper", yref="paper", xanchor="left", yanchor="bottom", xshift=12, yshift=3
    )
    return figure.drawn()


def _draw(figure: Sheet, panel: Sequence[TokenMeasure], *, row: int, names: Mapping[str, str]) -> None:
    values = np.stack([measure.values for measure in panel])
    signed = panel[0].signed
    reach = np.nanmax(np.abs(values), axis=1, initial=0.0)
    coloured, hover, limit = values, "%{y}, %{x}", None
    if signed:
        largest = reach[:, np.newaxis]
        coloured = values / np.where(largest > 0, largest, 1.0)
        hover, limit = f"%{{y}}, %{{x}}: {style.exact('customdata')}<br>{say('attention.over_largest')}", 1.0
    coloured = coloured.astype(np.float32)
    trace = parts.heatmap(coloured, hover=hover, bar=None, limit=limit, customdata=values, xgap=2, ygap=2)
    figure.add_trace(trace, row=row)
    if values.shape[1] <= MAX_NUMBERS:
        texts = [[_short(value, most) for value in line] for line, most in zip(values, reach, strict=True)]
        figure.add_trace(parts.cell_texts(trace, texts=texts), row=row)
    figure.update_yaxes(
        **style.label_rows([localize(names[measure.name]) for measure in panel], title=say("attention.measure")),
        row=row,
    )
    axis = "y" if row == 1 else f"y{row}"
    for line, measure in enumerate(panel):
        place = {"x": 1.0, "y": line, "xref": "paper", "yref": axis}
        figure.add_annotation(text=_agreement(measure), **place, xanchor="left", yanchor="middle", xshift=8)
        for column in np.flatnonzero(np.isnan(measure.values)):
            figure.add_annotation(text="–", x=int(column), y=line, xref="x" + axis[1:], yref=axis)


def _short(value: float, largest: float) -> str:
    """Format a number with at most three significant digits, and one if the row's ``largest`` is small.

    The hover text has all digits.
    """
    if not np.isfinite(value):
        return ""
    small = largest < 0.1
    if not value or abs(value) < 0.005 * (largest if small else 1):
        return "0"
    if small:
        return number(f"{value:.1g}")
    return number(f"{value:.2f}") if abs(value) < 9.995 else style.three_digits(float(value))


def _agreement(measure: TokenMeasure) -> str:
    if measure.name == "leave_one_out":
        return ""
    return number(f"{measure.agreement:.2f}") if np.isfinite(measure.agreement) else "–"
