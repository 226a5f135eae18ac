"""A matrix with tokens along one side: queries, keys, values, outputs, anything of shape token × dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _
from transformer.text.message import N_

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence


def token_heatmap(
    values: Any,
    *,
    tokens: TokenSequence,
    column: str = N_("dimension"),
    name: str = N_("value"),
    limit: float | None = None,
) -> go.Figure:
    """Signed numbers of every token, token × column, diverging around 0.

    ``values``: [token, column]; ``column`` and ``name`` say what the columns and the numbers are; ``limit`` fixes the
    colours to −limit…limit, so that several figures can share one scale (their own largest value if not given).
    """
    array = as_array(values, name=name, axes=("token", column), sizes={"token": len(tokens)})
    reach = style.symmetric_limit(array)
    if limit is not None and limit < reach * (1 - 1e-6):
        raise ValueError(
            f"limit is {limit:.6g}, but {name} reaches {reach:.6g}; a smaller limit would clip the colours unseen"
        )
    trace = parts.heatmap(
        array,
        hover=style.lines(
            _("{token} (position {place})", token="%{y}", place="%{y:d}"), f"{style.escape(_(column))} %{{x}}"
        ),
        bar=style.colour_bar(style.escape(_(name))),
        limit=limit or reach,
        ygap=1,
    )
    figure = Sheet(trace, *([parts.cell_texts(trace)] if array.shape[1] <= 12 else []))
    style.finish(figure, height=style.rows_height(len(tokens)), top=64)
    figure.update_yaxes(**style.token_rows(tokens, title=_("token")))
    figure.update_xaxes(title_text=f"{style.escape(_(column))} ({array.shape[1]})", range=[-0.5, array.shape[1] - 0.5])
    figure.update_xaxes(showgrid=False, zeroline=False)
    return figure.drawn()
