"""The shares of patches in a cosine, over the image."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _


def picture_shares(shares: Any, *, picture: str, labels: Sequence[str]) -> go.Figure:
    """Draw signed shares of patches over the image.

    ``shares``: [row of patches, column of patches]; ``picture`` is the image as an address that contains it; ``labels``
    are those of the patches in reading order.
    """
    values = as_array(shares, name="shares", axes=("row", "column"))
    n_rows, n_columns = values.shape
    require_same_length("labels", labels, expected=n_rows * n_columns, of="patches")
    texts = [[style.escape(label) for label in labels[row * n_columns :][:n_columns]] for row in range(n_rows)]
    figure = Sheet(
        parts.heatmap(
            values,
            hover="%{text}",
            bar=style.colour_bar(_("share of the cosine")),
            limit=style.symmetric_limit(values),
            text=texts,
            opacity=0.7,
        )
    )
    figure.add_image(picture, x=-0.5, y=-0.5, sizex=n_columns, sizey=n_rows, sizing="stretch")
    plain = {"fixedrange": True, "showgrid": False, "zeroline": False, "constrain": "domain", "showticklabels": False}
    figure.update_yaxes(**plain, scaleanchor="x", range=[n_rows - 0.5, -0.5])
    figure.update_xaxes(**plain, range=[-0.5, n_columns - 0.5])
    style.finish(figure, height=400, top=70)
    return figure.drawn()
