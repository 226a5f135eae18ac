"""How large the gradient of one training step is, block by block of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts import parts, style
from charts.checks import as_array
from charts.sheet import Sheet


def gradient_by_block(gradient: Any, *, kinds: Sequence[str], places: Sequence[str]) -> go.Figure:
    """The length of the gradient in every block: a row for each kind of block, a column for each place in the model.

    ``gradient``: [kind, place], at least 0, NaN where a place has no such block (nothing is drawn there); ``kinds``:
    "self-attention" …; ``places``: in the order of the model, "encoder 0" …
    """
    sizes = {"kind": len(kinds), "place": len(places)}
    lengths = as_array(gradient, name="gradient", axes=("kind", "place"), sizes=sizes, signed=False)
    trace = parts.heatmap(
        lengths,
        hover="%{y}, %{x}<br>length of the gradient",
        bar=style.colour_bar("length of the gradient"),
        maximum=float(np.nanmax(lengths, initial=0.0)) or 1.0,
        xgap=2,
        ygap=2,
    )
    figure = Sheet(trace, parts.cell_texts(trace))
    style.finish(figure, height=44 * len(kinds) + 130, top=64)
    figure.update_xaxes(**style.label_axis(places, title="where in the model"))
    figure.update_yaxes(**style.label_rows(kinds, title="kind of block"))
    return figure.drawn()
