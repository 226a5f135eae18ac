"""Parameters and computing time of a model, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array, require_columns
from charts.toolkit.sheet import place_side_by_side
from charts.toolkit.words import say

if TYPE_CHECKING:
    import pandas as pd


def time_and_parameters(blocks: pd.DataFrame) -> go.Figure:
    """Draw bars per block, stacked by part: parameters on the left, measured time on the right.

    ``blocks``: one row per part of a block, in the order of the forward pass, with the columns ``block``
    ("encoder layer 0"), ``part`` ("self-attention", "feed-forward", "norm" …), ``parameters`` (count) and
    optionally ``milliseconds`` (measured). At most eight different parts.
    """
    require_columns(blocks, name="blocks", columns=("block", "part", "parameters"))
    names = list(dict.fromkeys(map(str, blocks["block"])))
    kinds = list(dict.fromkeys(map(str, blocks["part"])))
    if len(kinds) > len(style.CATEGORICAL):
        raise ValueError(
            f"blocks has {len(kinds)} different parts {kinds}; join them to at most {len(style.CATEGORICAL)}"
        )
    measures = [("parameters", say("overview.parameters"), lambda count: say("overview.parameter_count", count=count))]
    if "milliseconds" in blocks.columns:
        measures.append(
            ("milliseconds", say("overview.measured_time_ms"), lambda time: say("overview.milliseconds", time=time))
        )
    figure = place_side_by_side([say("overview.parameters"), say("overview.time")][: len(measures)], spacing=0.08)
    places = {name: index for index, name in enumerate(names)}
    for column, (field, title, amount) in enumerate(measures, start=1):
        values = as_array(blocks[field], name=field, axes=("row",), signed=False).astype(np.float64)
        totals = np.zeros(len(names))
        for index, kind in enumerate(kinds):
            rows = [row for row, part in enumerate(blocks["part"]) if str(part) == kind]
            where = [places[str(blocks["block"].iloc[row])] for row in rows]
            np.add.at(totals, where, values[rows])
            figure.bar(
                x=values[rows],
                y=where,
                orientation="h",
                name=style.escape(kind),
                legendgroup=kind,
                showlegend=column == 1,
                marker={"color": style.category_colour(index), "line": {"width": 0}},
                hovertemplate=style.hover(
                    f"%{{y}}, {style.escape(kind)}",
                    amount(f"<b>%{{x:{',.0f' if column == 1 else style.EXACT}}}</b>"),
                ),
                col=column,
            )
        figure.scatter(
            x=totals,
            y=list(range(len(names))),
            mode="text",
            text=[f" {_short_count(total)} ({_share(total, totals.sum())})" for total in totals],
            textposition="middle right",
            textfont={"size": style.TICK_SIZE},
            cliponaxis=False,
            hoverinfo="skip",
            col=column,
        )
        figure.update_xaxes(
            title_text=title,
            range=[0, (1.8 if len(measures) > 1 else 1.3) * float(totals.max() or 1)],
            nticks=5,
            col=column,
        )
    style.finish(figure, height=style.rows_height(len(names), around=150), top=72)
    figure.update_layout(barmode="stack", legend={"y": 1 + 24 / max(100, figure.layout["height"] - 140)})
    figure.update_yaxes(**style.label_rows(names, title=""))
    figure.update_yaxes(title_text=say("overview.block"), col=1)
    return figure.drawn()


def _short_count(value: float) -> str:
    for size, sign in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return style.three_digits(value / size) + sign
    return style.three_digits(value)


def _share(value: float, total: float) -> str:
    return style.percent_digits(value / total if total else 0)
