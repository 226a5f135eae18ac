"""What the heads of one layer write for one token, and that it adds up."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_index
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _


def head_contributions(contributions: Any, *, bias: Any, output: Any, head: int) -> go.Figure:
    """One token's output as a sum, row by row: every head's part, the bias b_O, and their sum; signed, one scale.

    ``contributions``: [head, model], head_h W_O,h; ``bias``, ``output``: [model]; ``head`` is framed. ``bias`` is
    ``None`` where the projection has none.
    """
    written = as_array(contributions, name="contributions", axes=("head", "model"))
    n_heads, d_model = written.shape
    require_index(head, name="head", size=n_heads)
    sizes = {"model": d_model}
    more = {"bias": bias, "output": output} if bias is not None else {"output": output}
    rows = np.vstack(
        [written, *(as_array(part, name=name, axes=("model",), sizes=sizes) for name, part in more.items())]
    )
    figure = Sheet(
        parts.heatmap(
            rows,
            hover=_("{place}, dimension {dimension}", place="%{y}", dimension="%{x}"),
            bar=style.colour_bar(_("what is written")),
            limit=style.symmetric_limit(rows),
            ygap=2,
        )
    )
    names = [_("head {head}", head=index) for index in range(n_heads)]
    names += [_("bias b_O"), _("sum = output")] if bias is not None else [_("sum = output")]
    style.finish(figure, height=style.rows_height(len(names)), top=64)
    figure.update_yaxes(**style.label_rows(names, title=_("part of the sum")))
    figure.update_xaxes(title_text=_("dimension of the stream ({n})", n=d_model), showgrid=False, zeroline=False)
    box = {"x0": -0.5, "x1": d_model - 0.5, "y0": head - 0.5, "y1": head + 0.5}
    figure.add_shape(type="rect", **box, line={"color": style.CHOSEN, "width": 3})
    figure.add_hline(y=len(names) - 1.5, line={"color": style.NEUTRAL, "width": 2})
    return figure.drawn()
