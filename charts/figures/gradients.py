"""One training step: how far it moves every row of E, and the length of the gradient in every block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_ids
from charts.toolkit.numbers import whole
from charts.toolkit.sheet import stack_panels, stacked_height
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence


def gradient_rows(moved: Any, *, tokens: TokenSequence, what: str = "distance moved") -> go.Figure:
    """Draw how far every row of E moved: bars for the sentence's tokens, a skyline of all rows.

    ``moved`` is [vocabulary], ‖E_after[i] − E_before[i]‖ for every id, or another length that ``what`` names. The last
    bar is the largest length among the rows that the sentence does not look up; it is exactly 0 if only the rows that
    are looked up get a gradient.
    """
    what = localize(what)
    distances = as_array(moved, name="moved", axes=("vocabulary",), signed=False)
    require_ids(tokens, size=len(distances))
    fetched = {token.id: token.display for token in tokens}
    others = np.ones(len(distances), dtype=bool)
    others[list(fetched)] = False
    labels, values = list(fetched.values()), distances[list(fetched)]
    colours = [style.CHOSEN] * len(labels)
    if others.any():
        labels.append(say("largest_other", n=whole(others.sum())))
        values, colours = np.append(values, distances[others].max()), [*colours, style.MASKED]
    heights = [24 * min(len(labels), style.MAX_LABELS), 130]
    figure = stack_panels([say("looked_up_rows"), say("all_rows")], heights=heights, gap=90)
    figure.add_trace(parts.bar_rows(values, hover=style.lines("%{y}", what), colours=colours), row=1)
    for chosen, colour, size, name in (
        (others, style.QUIET, 0, say("not_looked_up")),
        (~others, style.CHOSEN, 8, say("looked_up")),
    ):
        figure.scatter(
            x=np.flatnonzero(chosen).astype(np.int32),
            y=distances[chosen],
            # A skyline is one shape; thousands of dots would be as many elements and take the browser seconds.
            mode="markers" if size else "lines",
            fill=None if size else "tozeroy",
            line={"width": 1, "color": colour},
            fillcolor=colour,
            name=name,
            marker={"size": size, "color": colour},
            showlegend=False,
            hovertemplate=style.hover(say("numbered_row", row="%{x}", name=name), f"{what} {style.exact('y')}"),
            row=2,
        )
    style.finish(figure, height=stacked_height(heights, around=90, gap=90), top=30)
    figure.update_layout(margin_r=64)
    figure.update_xaxes(matches=None)
    reach = parts.bar_range(values, share=0.0)
    figure.update_xaxes(showticklabels=True, range=reach, title_text=what, nticks=6, row=1)
    ends = [-0.01 * len(distances), 1.01 * len(distances)]
    figure.update_xaxes(range=ends, title_text=say("embedding_row"), row=2)
    figure.update_yaxes(**style.label_rows(labels, title=say("row_of")), row=1)
    figure.update_yaxes(title_text=what, rangemode="tozero", row=2)
    return figure.drawn()
