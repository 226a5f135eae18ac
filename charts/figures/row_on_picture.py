"""One query's row of each head, drawn over the image whose patches are the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import place_in_grid
from charts.toolkit.words import say

_SHORT_NAME, _PANEL_HEIGHT = 31, 220  # of a row on an image: letters of a name beside three others, pixels
_NUMBERED = 8  # rows or columns of patches up to which they are numbered


def row_on_picture(
    weights: Any, *, picture: str, names: Sequence[str], labels: Sequence[str], stretch: bool = False
) -> go.Figure:
    """Draw one query's row of every head over the image: the colour of a patch is its weight.

    ``weights``: [head, row of patches, column of patches], 0…1; ``picture`` is the image as a data URL; ``names`` are
    those of the panels, ``labels`` those of the patches in reading order. The scale is fixed to 0…1, or, with
    ``stretch``, ends at the largest weight, which the scale then states.
    """
    values = as_array(weights, name="weights", axes=("head", "row", "column"), signed=False)
    require_same_length("names", names, expected=len(values), of="heads")
    n_rows, n_columns = values.shape[1:]
    require_same_length("labels", labels, expected=n_rows * n_columns, of="patches")
    end, scale = float(values.max()) if stretch else 1.0, say("names.weight")
    if 0 < end < 1:
        scale += " " + say("stretched", limit=style.three_digits(end))
    else:
        end = 1.0
    across = min(len(values), 4 if max(map(len, names)) <= _SHORT_NAME else 3)
    figure = place_in_grid([style.escape(name) for name in names], across=across)
    texts = [[style.escape(label) for label in labels[row * n_columns :][:n_columns]] for row in range(n_rows)]
    few = max(n_rows, n_columns) <= _NUMBERED
    for place, head in enumerate(values):
        row, col = divmod(place, across)
        panel = {"row": row + 1, "col": col + 1}
        bar = style.colour_bar(scale, ypad=style.ABOVE_NAMES) if place == across - 1 else None
        shown = parts.heatmap(head, hover="%{text}", bar=bar, maximum=end, text=texts, opacity=0.72)
        figure.add_trace(shown, **panel)
        figure.add_image(picture, x=-0.5, y=-0.5, sizex=n_columns, sizey=n_rows, sizing="stretch", **panel)
        plain: dict[str, Any] = {"fixedrange": True, "showgrid": False, "zeroline": False, "constrain": "domain"}
        anchor = f"x{place + 1 if place else ''}"
        figure.update_yaxes(
            **panel, **plain, scaleanchor=anchor, range=[n_rows - 0.5, -0.5], showticklabels=few and not col
        )
        figure.update_xaxes(**panel, **plain, range=[-0.5, n_columns - 0.5], showticklabels=few)
    style.finish(figure, height=80 + _PANEL_HEIGHT * -(-len(values) // across), top=80)
    for update, count in ((figure.update_yaxes, n_rows), (figure.update_xaxes, n_columns)):
        update(tickvals=list(range(count)), ticktext=[str(place + 1) for place in range(count)])
    if few:
        figure.update_yaxes(row=1, col=1, title_text=say("attention.row_patches"))
        figure.update_xaxes(row=-(-len(values) // across), col=1, title_text=say("attention.column_patches"))
    return figure.drawn()
