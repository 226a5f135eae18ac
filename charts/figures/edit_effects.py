"""What a change of the model does: importance of its heads, candidates before and after, divergence per token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, as_probabilities, require_columns, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _
from transformer.text.message import N_

if TYPE_CHECKING:
    import pandas as pd


def head_importance(
    tables: Mapping[str, Any], *, name: str = N_("change of ln p(answer) without the head")
) -> go.Figure:
    """One number for every head of every kind of attention, on one diverging scale centred on 0.

    ``tables``: for each kind of attention, by name, an array [layer, head]; NaN leaves a cell empty. Blocks stand below
    each other, the first layer of the first one on top.
    """
    arrays = {kind: as_array(values, name=kind, axes=("layer", "head")) for kind, values in tables.items()}
    if not arrays:
        raise ValueError("tables has 0 entries; give an array [layer, head] for each kind of attention")
    widths = {array.shape[1] for array in arrays.values()}
    if len(widths) > 1:
        raise ValueError(f"the tables have {sorted(widths)} heads; all kinds of attention must have as many")
    values = np.concatenate(list(arrays.values()))
    rows = [f"{kind} {layer}" for kind, array in arrays.items() for layer in range(len(array))]
    trace = parts.heatmap(
        values,
        hover=style.lines("%{y}, %{x}", style.escape(_(name))),
        bar=style.colour_bar(style.escape(_(name))),
        limit=style.symmetric_limit(values),
        xgap=2,
        ygap=2,
    )
    figure = Sheet(trace, parts.cell_texts(trace))
    style.finish(figure, height=34 * len(rows) + 130, top=64)
    figure.update_yaxes(**style.label_rows(rows, title=_("layer")))
    figure.update_xaxes(
        **style.label_axis([_("head {head}", head=head) for head in range(widths.pop())], title=_("head"))
    )
    for edge in np.cumsum([len(array) for array in arrays.values()])[:-1]:
        figure.add_hline(y=edge - 0.5, line={"color": style.NEUTRAL, "width": 3})
    return figure.drawn()


def candidates_before_and_after(
    candidates: pd.DataFrame,
    *,
    names: tuple[str, str] = (N_("before"), N_("after")),
    axis: str = N_("probability of coming next"),
    row: str = N_("candidate"),
) -> go.Figure:
    """Two bars for every candidate: its probability before a change (grey) and after it.

    ``candidates``: columns ``piece`` (as displayed), ``before``, ``after`` and optionally ``chosen`` (bool), whose
    label is marked by a dot. The axis is fixed to 0…1.
    """
    require_columns(candidates, name="candidates", columns=("piece", "before", "after"))
    labels = [str(piece) for piece in candidates["piece"]]
    if "chosen" in candidates:
        labels = [
            f"● {piece}" if is_chosen else piece for piece, is_chosen in zip(labels, candidates["chosen"], strict=True)
        ]
    figure = Sheet()
    # Plotly draws the first of a group lowest; the axis is turned round, so it stands on top.
    for column, name, colour in zip(("before", "after"), names, (style.MASKED, style.BAR), strict=True):
        values = as_probabilities(candidates[column], name=column, axes=("candidate",))
        bars = parts.bar_rows(
            values,
            hover=style.lines("%{y}", _("probability {probability}", probability=style.escape(_(name)))),
            colours=colour,
        )
        figure.add_trace({**bars, "name": style.escape(_(name)), "showlegend": True})
    style.finish(figure, height=44 * len(labels) + 100, top=36)
    figure.update_layout(barmode="group", bargap=0.3, margin_r=60)
    figure.update_xaxes(title_text=style.escape(_(axis)), range=[0, 1])
    figure.update_yaxes(**style.label_rows(labels, title=_(row)))
    return figure.drawn()


def divergence_per_token(
    divergence: Any, *, labels: Sequence[str], name: str = N_("KL(before ‖ after), bits")
) -> go.Figure:
    """One bar for every token of the answer: how far the distribution that it came from has moved.

    ``divergence``: [token], at least 0; ``labels``: the tokens.
    """
    values = as_array(divergence, name="divergence", axes=("token",), signed=False)
    require_same_length("labels", labels, expected=len(values), of="tokens")
    figure = Sheet()
    hover = style.hover(
        _("{token} (token {place})", token="%{x}", place="%{x:d}"), _("{value} bits", value=style.exact("y"))
    )
    figure.bar(**parts.token_bars(values, hover=hover, colours=style.BAR))
    style.finish(figure, height=300, top=32)
    figure.update_layout(uniformtext=parts.NUMBERS_ALIKE)
    figure.update_xaxes(**style.label_axis(labels, title=_("token of the answer")))
    figure.update_yaxes(title_text=style.escape(_(name)), range=[0, max(1e-6, float(values.max())) * 1.18])
    return figure.drawn()
