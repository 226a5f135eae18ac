"""How large the gradient of one training step is, block by block of the model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _


def gradient_by_block(gradient: Any, *, places: Sequence[str], kinds: Sequence[str]) -> go.Figure:
    """The length of the gradient in every block: a row for each place in the model, a column for each kind of block.

    ``gradient``: [place, kind], at least 0, NaN where a place has no such block (nothing is drawn there); ``places``:
    in the order of the model, "encoder 0" …; ``kinds``: "self-attention" …
    """
    sizes = {"place": len(places), "kind": len(kinds)}
    lengths = as_array(gradient, name="gradient", axes=("place", "kind"), sizes=sizes, signed=False)
    trace = parts.heatmap(
        lengths,
        hover=style.lines("%{y}, %{x}", _("length of the gradient")),
        bar=style.colour_bar(_("length of the gradient")),
        maximum=float(np.nanmax(lengths, initial=0.0)) or 1.0,
        xgap=2,
        ygap=2,
    )
    figure = Sheet(trace, parts.cell_texts(trace))
    style.finish(figure, height=style.rows_height(len(places)), top=64)
    figure.update_xaxes(**style.label_axis(kinds, title=_("kind of block")))
    figure.update_yaxes(**style.label_rows(places, title=_("where in the model")))
    return figure.drawn()
