"""Figures of the residual stream: how its vectors grow, and what each sub-layer adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_index
from charts.toolkit.sheet import Sheet, stack_panels, stacked_height
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence


def residual_growth(
    norms: Any, *, steps: Sequence[str], tokens: TokenSequence, highlighted: int | None = None
) -> go.Figure:
    """Draw the length of every token's vector in the residual stream after each step, and the mean.

    ``norms``: [step, token], ‖x‖; ``steps``: names of the steps in order ("embedding", "0 self-attention" …);
    ``highlighted``: index of the token to draw in colour.
    """
    sizes = {"step": len(steps), "token": len(tokens)}
    values = as_array(norms, name="norms", axes=("step", "token"), sizes=sizes, signed=False)
    if highlighted is not None:
        require_index(highlighted, name="highlighted token", size=len(tokens))
    places = np.arange(len(steps))
    figure = Sheet()
    order = [index for index in range(len(tokens)) if index != highlighted]
    for index in order + ([] if highlighted is None else [highlighted]):
        chosen = index == highlighted
        label = style.escape(tokens.labels[index])
        figure.scatter(
            x=places,
            y=values[:, index],
            mode="lines+markers" if chosen else "lines",
            name=label
            if chosen
            else say("add_norm.each_other_token")
            if highlighted is not None
            else say("add_norm.each_token"),
            legendgroup=label if chosen else "tokens",
            showlegend=chosen or index == order[0],
            line={"color": style.CHOSEN if chosen else style.QUIET, "width": 3 if chosen else 1.5},
            hovertemplate=style.hover(f"{label} %{{x}}", say("add_norm.length", length=style.exact("y"))),
        )
    figure.scatter(
        x=places,
        y=values.mean(axis=1),
        mode="lines+markers",
        name=say("add_norm.mean_all_tokens"),
        line={"color": style.BAR, "width": 3, "dash": "dash"},
        hovertemplate=style.hover(
            say("add_norm.mean_at", place="%{x}"), say("add_norm.length", length=style.exact("y"))
        ),
    )
    style.finish(figure, height=440, top=48)
    figure.update_xaxes(**style.label_axis([localize(step) for step in steps], title=say("add_norm.after_which_step")))
    figure.update_yaxes(title_text=say("add_norm.vector_length"), rangemode="tozero")
    return figure.drawn()


def sublayer_contribution(ratio: Any, *, cosine: Any, sublayers: Sequence[str], tokens: TokenSequence) -> go.Figure:
    """Draw what each sub-layer adds to each token: length relative to the residual stream, and direction.

    ``ratio``: [sub-layer, token], ‖update‖ / ‖stream before it‖; ``cosine``: the same shape, the cosine between the
    two (1 = the same direction, −1 = the opposite, 0 = something new).
    """
    sizes = {"sub-layer": len(sublayers), "token": len(tokens)}
    axes = ("sub-layer", "token")
    ratios = as_array(ratio, name="ratio", axes=axes, sizes=sizes, signed=False)
    cosines = as_array(cosine, name="cosine", axes=axes, sizes=sizes)
    if np.nanmax(np.abs(cosines)) > 1 + 1e-4:
        raise ValueError(f"cosine holds {style.three_digits(np.nanmax(np.abs(cosines)))}; a cosine lies in −1…1")
    gap = 72
    heights = [max(120.0, 28.0 * len(sublayers))] * 2
    figure = stack_panels([say("add_norm.relative_length"), say("add_norm.direction_cosine")], heights=heights, gap=gap)
    total = stacked_height(heights, around=170, gap=gap)
    lower_top = heights[1] / (stacked_height(heights, around=0, gap=gap))
    for row, trace in enumerate(
        (
            parts.heatmap(
                ratios,
                hover=style.lines("%{y}, %{x}", say("add_norm.update_ratio")),
                bar=style.colour_bar("", len=0.3, ypad=style.ABOVE_NAMES),
                maximum=float(np.nanmax(ratios)) or 1.0,
                xgap=1,
                ygap=1,
            ),
            parts.heatmap(
                cosines,
                hover=style.lines("%{y}, %{x}", say("add_norm.cosine")),
                bar=style.colour_bar("", len=0.3, ypad=style.ABOVE_NAMES, y=lower_top),
                limit=1.0,
                xgap=1,
                ygap=1,
            ),
        ),
        start=1,
    ):
        figure.add_trace(trace, row=row)
        if len(tokens) <= 10:
            figure.add_trace(parts.cell_texts(trace), row=row)
    style.finish(figure, height=total, top=64)
    figure.update_yaxes(**style.label_rows([localize(one) for one in sublayers], title=say("names.sub_layer")))
    figure.update_xaxes(**style.token_axis(tokens, title=""))
    figure.update_xaxes(title_text=say("names.token"), row=2)
    return figure.drawn()
