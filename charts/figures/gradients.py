"""One training step: how far it moves every row of E, and the length of the gradient in every block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_index
from charts.toolkit.numbers import whole
from charts.toolkit.sheet import Sheet, stack_panels, stacked_height
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence


def gradient_rows(moved: Any, *, tokens: TokenSequence, what: str = "distance moved") -> go.Figure:
    """Draw how far every row of E moved: bars for the sentence's tokens, a skyline of all rows.

    ``moved`` is [vocabulary], ‖E_after[i] − E_before[i]‖ for every id, or another length that ``what`` names. The last
    bar is the largest of all rows that the sentence does not look up, exactly 0 if only these rows get a gradient.
    """
    what = localize(what)
    distances = as_array(moved, name="moved", axes=("vocabulary",), signed=False)
    for token in tokens:
        require_index(token.id, name=f"the id of token {token.display!r}", size=len(distances))
    first = {token.id: token for token in reversed(tokens.tokens)}
    fetched = [token for token in tokens if first[token.id] is token]
    ids = np.array([token.id for token in fetched])
    others = np.ones(len(distances), dtype=bool)
    others[ids] = False
    labels = [token.display for token in fetched]
    values = distances[ids]
    if others.any():
        labels.append(say("largest_other", n=whole(others.sum())))
        values = np.append(values, distances[others].max())
    heights = [24 * min(len(labels), style.MAX_LABELS), 130]
    figure = stack_panels([say("looked_up_rows"), say("all_rows")], heights=heights, gap=90)
    colours = [style.CHOSEN] * len(fetched) + [style.MASKED]
    figure.add_trace(parts.bar_rows(values, hover=style.lines("%{y}", what), colours=colours[: len(values)]), row=1)
    everywhere = np.arange(len(distances), dtype=np.int32)
    for chosen, colour, size, name in (
        (others, style.QUIET, 0, say("not_looked_up")),
        (~others, style.CHOSEN, 8, say("looked_up")),
    ):
        figure.scatter(
            x=everywhere[chosen],
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
    figure.update_xaxes(
        matches=None,
        showticklabels=True,
        range=parts.bar_range(values, share=0.0),
        title_text=what,
        row=1,
        nticks=6,
    )
    figure.update_xaxes(matches=None, range=[-0.01 * len(distances), 1.01 * len(distances)], row=2)
    figure.update_xaxes(title_text=say("embedding_row"), row=2)
    figure.update_yaxes(**style.label_rows(labels, title=say("row_of")), row=1)
    figure.update_yaxes(title_text=what, rangemode="tozero", row=2)
    return figure.drawn()


def gradient_by_block(gradient: Any, *, places: Sequence[str], kinds: Sequence[str]) -> go.Figure:
    """Draw the length of the gradient in every block: rows are locations, columns kinds of blocks.

    ``gradient`` is [place, kind], at least 0, NaN (empty) if a location has no such block; ``places`` are in the order
    of the model, "encoder 0" …; ``kinds`` are "self-attention" …
    """
    sizes = {"place": len(places), "kind": len(kinds)}
    lengths = as_array(gradient, name="gradient", axes=("place", "kind"), sizes=sizes, signed=False)
    trace = parts.heatmap(
        lengths,
        hover=style.lines("%{y}, %{x}", say("length_gradient")),
        bar=style.colour_bar(say("length_gradient")),
        maximum=float(np.nanmax(lengths, initial=0.0)) or 1.0,
        xgap=2,
        ygap=2,
    )
    figure = Sheet(trace, parts.cell_texts(trace))
    style.finish(figure, height=style.rows_height(len(places)), top=64)
    figure.update_xaxes(**style.label_axis(kinds, title=say("kind_block")))
    figure.update_yaxes(**style.label_rows(places, title=say("location")))
    return figure.drawn()
