"""Figures of LayerNorm: statistics before and after, γ and β, and the numbers of one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array
from charts.toolkit.sheet import stack_panels, stacked_height
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence


def norm_statistics(
    mean_before: Any,
    *,
    std_before: Any,
    mean_after: Any,
    std_after: Any,
    tokens: TokenSequence,
    after: str = "after normalising",
) -> go.Figure:
    """Draw mean and standard deviation of every token's vector, before and after LayerNorm.

    All four arrays have the axis [token]. ``after`` names the second state ("after normalising", or "at the output").
    """
    axes, sizes = ("token",), {"token": len(tokens)}
    panels = [
        (say("names.mean"), mean_before, mean_after),
        (say("add_norm.standard_deviation"), std_before, std_after),
    ]
    heights = [118.0, 118.0]
    figure = stack_panels([name for name, *_ in panels], heights=heights)
    places = np.arange(len(tokens))
    for row, (name, before_values, after_values) in enumerate(panels, start=1):
        old = as_array(before_values, name=f"{name} before", axes=axes, sizes=sizes, signed=row == 1)
        new = as_array(after_values, name=f"{name} after", axes=axes, sizes=sizes, signed=row == 1)
        figure.scatter(
            x=[x for place in places for x in (int(place), int(place), None)],
            y=[y for pair in zip(old, new, strict=True) for y in (float(pair[0]), float(pair[1]), None)],
            mode="lines",
            line={"color": style.QUIET, "width": 2},
            hoverinfo="skip",
            row=row,
        )
        for values, label, colour, symbol in (
            (old, say("names.before"), style.CATEGORICAL[1], "circle-open"),
            (new, style.escape(localize(after)), style.CATEGORICAL[0], "circle"),
        ):
            figure.scatter(
                x=places,
                y=values,
                mode="markers",
                name=label,
                legendgroup=label,
                showlegend=row == 1,
                marker={"color": colour, "symbol": symbol, "size": 11, "line": {"width": 2.5, "color": colour}},
                hovertemplate=style.hover(
                    "%{x}", say("add_norm.name_state_value", name=name, state=label, value=style.exact("y"))
                ),
                row=row,
            )
        figure.update_yaxes(title_text=name, row=row)
    style.finish(figure, height=stacked_height(heights), top=70)
    figure.update_layout(legend={"x": 1, "xanchor": "right", "y": 1.02})
    figure.update_xaxes(**style.token_axis(tokens, title=""))
    figure.update_xaxes(title_text=say("names.token"), row=2)
    figure.update_yaxes(rangemode="tozero", row=2)
    return figure.drawn()


def gain_and_bias(gain: Any, *, bias: Any) -> go.Figure:
    """Draw γ and β of one LayerNorm over the dimensions, as bars from their initial values, 1 and 0.

    ``gain``, ``bias``: [model]; an RMSNorm has no bias (``None``).
    """
    gains = as_array(gain, name="gain", axes=("dimension",))
    shown, titles = [("γ", gains, 1.0)], [say("add_norm.gamma")]
    if bias is not None:
        biases = as_array(bias, name="bias", axes=("dimension",), sizes={"dimension": len(gains)})
        shown.append(("β", biases, 0.0))
        titles.append(say("add_norm.beta"))
    heights = [150.0] * len(shown)
    figure = stack_panels(titles, heights=heights)
    for row, (name, values, start) in enumerate(shown, start=1):
        moved = values - np.float32(start)
        figure.bar(
            x=np.arange(len(values), dtype=np.int32),
            y=moved,
            base=start,
            customdata=values,
            marker={"color": parts.signed_colours(moved), "line": {"width": 0}},
            hovertemplate=style.hover(
                say("dimension", dimension="%{x}"), f"{name} = <b>%{{customdata:{style.EXACT}}}</b>"
            ),
            row=row,
        )
        figure.add_hline(y=start, line={"color": style.NEUTRAL, "width": 1}, row=row)
        figure.update_yaxes(title_text=name, row=row)
    style.finish(figure, height=stacked_height(heights, around=100), top=32)
    figure.update_layout(bargap=0)
    figure.update_xaxes(range=[-0.5, len(gains) - 0.5], showgrid=False)
    figure.update_xaxes(title_text=say("dimension_axis", n=len(gains)), row=len(shown))
    return figure.drawn()


def position_distribution(
    before: Any,
    *,
    after: Any,
    token: str,
    after_name: str = "after LayerNorm",
    norm: str = "LayerNorm",
    shared_axis: bool = False,
) -> go.Figure:
    """Draw one token's numbers before and after a norm as histograms, with a tick for each number.

    ``before``, ``after``: [model]; ``token``: its displayed form. Solid lines are the mean, dotted
    ones mean ± standard deviation. ``shared_axis`` puts both on one scale, which shows the shrinking but may squeeze
    one of them.
    """
    first = as_array(before, name="before", axes=("dimension",))
    second = as_array(after, name="after", axes=("dimension",), sizes={"dimension": len(first)})
    heights = [150.0, 150.0]
    titles = [
        "add_norm.before_norm",
        "add_norm.after_norm",
    ]
    names = [
        say(
            title,
            token=style.escape(token),
            norm=norm,
            after=style.escape(localize(after_name)),
            mean=style.three_digits(float(values.mean())),
            std=style.three_digits(float(values.std())),
        )
        for title, values in zip(titles, (first, second), strict=True)
    ]
    figure = stack_panels(names, heights=heights)
    for row, values in enumerate((first, second), start=1):
        counts, edges = np.histogram(values, bins=30)
        colour = style.CATEGORICAL[1] if row == 1 else style.CATEGORICAL[0]
        mean, std = float(values.mean()), float(values.std())
        figure.bar(
            x=((edges[:-1] + edges[1:]) / 2).astype(np.float32),
            y=counts,
            width=np.diff(edges).astype(np.float32),
            marker={"color": colour, "line": {"width": 0}},
            customdata=np.stack([edges[:-1], edges[1:]], axis=1).astype(np.float32),
            hovertemplate=(
                style.hover(
                    say("add_norm.share_between", share="<b>%{y}</b>"),
                    say(
                        "add_norm.low_and_high",
                        low=f"%{{customdata[0]:{style.EXACT}}}",
                        high=f"%{{customdata[1]:{style.EXACT}}}",
                    ),
                )
            ),
            row=row,
        )
        figure.scatter(
            x=values,
            y=np.full(len(values), -0.06 * counts.max(), dtype=np.float32),
            customdata=np.arange(len(values), dtype=np.int32),
            mode="markers",
            marker={"symbol": "line-ns", "size": 9, "line": {"width": 1, "color": style.NEUTRAL}},
            hovertemplate=style.hover(say("dimension", dimension="%{customdata}"), style.exact("x")),
            row=row,
        )
        figure.add_vline(x=mean, line={"color": style.NEUTRAL, "width": 2}, row=row)
        for side in (-std, std):
            figure.add_vline(x=mean + side, line={"color": style.NEUTRAL, "width": 1.5, "dash": "dot"}, row=row)
        figure.update_yaxes(title_text=say("add_norm.number_values"), row=row)
    style.finish(figure, height=stacked_height(heights, around=110), top=32)
    figure.update_layout(bargap=0)
    figure.update_xaxes(showticklabels=True, zeroline=False)
    if not shared_axis:
        figure.update_xaxes(matches=None)
    figure.update_xaxes(title_text=say("names.value"), row=2)
    return figure.drawn()
