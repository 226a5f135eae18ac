"""How large the gradient of one training step is, block by block of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts import style
from charts.checks import as_array
from charts.sheet import Sheet, bar


def gradient_by_block(gradient: Mapping[str, Any], *, places: Sequence[str]) -> go.Figure:
    """Bars of ‖gradient‖, grouped by where in the model they stand, one colour for each kind of block.

    ``gradient``: kind of block ("self-attention" …) → [place], NaN where a place has no such block; ``places``: names
    of the places in the order of the model ("embedding", "encoder 0" …).
    """
    figure = Sheet()
    sizes = {"place": len(places)}
    for index, (kind, values) in enumerate(gradient.items()):
        lengths = as_array(values, name=kind, axes=("place",), sizes=sizes, signed=False)
        here = np.flatnonzero(np.isfinite(lengths))
        figure.add_trace(
            bar(
                x=here,
                y=lengths[here],
                name=style.escape(kind),
                marker={"color": style.category_colour(index), "line": {"width": 0}},
                text=[style.three_digits(float(value)) for value in lengths[here]],
                textposition="outside",
                textfont={"size": style.TICK_SIZE},
                textangle=0,
                cliponaxis=False,
                hovertemplate=f"%{{x}}<br>{style.escape(kind)} <b>%{{y:{style.EXACT}}}</b><extra></extra>",
            )
        )
    style.finish(figure, height=360, top=64)
    figure.update_layout(barmode="group", bargap=0.2, bargroupgap=0.05)
    figure.update_xaxes(**style.label_axis(places, title="where in the model"))
    figure.update_yaxes(title_text="length of the gradient", rangemode="tozero")
    return figure.drawn()
