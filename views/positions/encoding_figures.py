"""Figures of positional encodings: table, single waves, similarity, and token + position = sum."""

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

DIMENSIONS = "dimension_axis"
CHANNELS = "positions.rotated_channels"


def encoding_heatmap(encoding: Any, *, tokens: TokenSequence | None = None, dimensions: str = DIMENSIONS) -> go.Figure:
    """Draw the table of positional encodings, position × dimension, diverging around 0.

    ``encoding``: [position, model], the rows that are drawn. ``tokens`` label the rows if there are as many; if there
    are more rows, a line marks the end of the sentence. ``dimensions``: title of the columns, with their number n.
    """
    values = as_array(encoding, name="encoding", axes=("position", "dimension"))
    n_positions, n_dimensions = values.shape
    figure = Sheet(
        parts.heatmap(
            values,
            hover=style.lines(say("positions.numbered_position", place="%{y}"), say("dimension", dimension="%{x}")),
            bar=style.colour_bar(say("names.value")),
            limit=style.symmetric_limit(values),
            **({"ygap": 2} if tokens is not None and len(tokens) == n_positions else {}),
        )
    )
    style.finish(figure, height=min(400, max(300, 30 * n_positions + 130)), top=64)
    figure.update_yaxes(title_text=say("positions.position_axis"), range=[n_positions - 0.5, -0.5], zeroline=False)
    figure.update_xaxes(title_text=say(dimensions, n=n_dimensions), showgrid=False, zeroline=False)
    if tokens is not None:
        if len(tokens) > n_positions:
            raise ValueError(
                f"the sentence has {len(tokens)} tokens but encoding has only {n_positions} rows; give a row for each"
            )
        if len(tokens) == n_positions:
            places = [f"{token.display}  {place}" for place, token in enumerate(tokens)]
            figure.update_yaxes(**style.label_rows(places, title=say("positions.position_axis")))
            return figure.drawn()
        figure.add_hline(y=len(tokens) - 0.5, line={"color": "#111111", "width": 4})
        figure.add_hline(
            y=len(tokens) - 0.5,
            line={"color": "#FFFFFF", "width": 2, "dash": "dash"},
        )
        figure.add_annotation(
            text=say("positions.input_end", n=len(tokens)),
            font={"color": "#FFFFFF", "size": style.TEXT_SIZE},
            bgcolor="rgba(0,0,0,0.75)",
            x=1,
            y=len(tokens) - 0.5,
            xref="x domain",
            yref="y",
            xanchor="right",
            yanchor="top",
        )
    return figure.drawn()


def encoding_waves(encoding: Any, *, dimensions: Sequence[int], tokens: TokenSequence | None = None) -> go.Figure:
    """Draw single dimensions of the encoding over the position, with dots at the sentence's tokens.

    ``encoding``: [position, model]; ``dimensions``: which columns to draw, at most eight (one colour each).
    """
    values = as_array(encoding, name="encoding", axes=("position", "dimension"))
    if not 1 <= len(dimensions) <= len(style.CATEGORICAL):
        raise ValueError(f"{len(dimensions)} dimensions were asked for; choose 1 to {len(style.CATEGORICAL)} curves")
    positions = np.arange(len(values))
    figure = Sheet()
    for number, dimension in enumerate(dimensions):
        require_index(dimension, name="dimension", size=values.shape[1])
        curve, colour = values[:, dimension], style.category_colour(number)
        figure.scatter(
            x=positions,
            y=curve,
            mode="lines",
            name=say("dimension", dimension=dimension),
            legendgroup=str(dimension),
            line={"color": colour, "width": 2.5},
            hovertemplate=style.hover(
                say("positions.position_dimension", place="%{x}", dimension=dimension), style.exact("y")
            ),
        )
        if tokens is not None:
            here = min(len(tokens), len(values))
            figure.scatter(
                x=positions[:here],
                y=curve[:here],
                mode="markers",
                legendgroup=str(dimension),
                marker={"color": colour, "size": 10 if here <= 20 else 6, "line": {"width": 1, "color": "white"}},
                text=[style.escape(token.display) for token in tokens.tokens[:here]],
                hovertemplate=(
                    style.hover(
                        say(
                            "positions.token_position_dimension",
                            token="%{text}",
                            place="%{x}",
                            dimension=dimension,
                        ),
                        style.exact("y"),
                    )
                ),
            )
    style.finish(figure, height=380, top=40)
    across = say("positions.position_axis")
    if tokens is not None:
        across = say("positions.position_axis_dots")
    figure.update_xaxes(title_text=across, range=[-0.5, len(values) - 0.5], zeroline=False)
    figure.update_yaxes(title_text=say("positions.encoding_value"))
    return figure.drawn()


def position_similarity(similarity: Any, *, measure: str = "cosine similarity") -> go.Figure:
    """Draw the similarity of the encodings of two positions, position × position, diverging around 0.

    ``similarity``: [position, position]. Cosines use the whole scale −1…1; any other ``measure`` is scaled to its
    largest absolute value.
    """
    values = as_array(similarity, name="similarity", axes=("position", "other position"))
    if values.shape[0] != values.shape[1]:
        raise ValueError(f"similarity has shape {values.shape}; it must have as many rows as columns")
    limit = 1.0 if measure.startswith("cosine") else style.symmetric_limit(values)
    figure = Sheet(
        parts.heatmap(
            values,
            hover=style.lines(say("positions.positions", first="%{y}", second="%{x}"), style.escape(localize(measure))),
            bar=style.colour_bar(localize(measure)),
            limit=limit,
        )
    )
    style.finish(figure, height=470, top=64)  # fits on the first screen, even below a lesson's bar
    axis = {"showgrid": False, "zeroline": False, "constrain": "domain"}
    figure.update_xaxes(title_text=say("positions.position"), **axis)
    figure.update_yaxes(title_text=say("positions.position"), autorange="reversed", scaleanchor="x", **axis)
    return figure.drawn()


def embedding_sum(token: Any, *, position: Any, total: Any, tokens: TokenSequence, scaled: bool = True) -> go.Figure:
    """Draw token embedding + positional encoding = input of the first layer: three heatmaps on one scale.

    All three have the axes [token, model]. ``token`` is multiplied by √d_model if the model does so (``scaled``).
    """
    embedded = say("positions.scaled_embedding") if scaled else say("positions.token_embedding")
    names = (embedded, say("positions.plus_position"), say("positions.equals_sum"))
    sizes = {"token": len(tokens)}
    first = as_array(token, name="token", axes=("token", "dimension"), sizes=sizes)
    sizes["dimension"] = first.shape[1]
    second = as_array(position, name="position", axes=("token", "dimension"), sizes=sizes)
    third = as_array(total, name="total", axes=("token", "dimension"), sizes=sizes)
    limit = style.symmetric_limit(first, second, third)
    row = min(24.0, max(14.0, 110 / len(tokens)))
    heights, gap = [min(row * len(tokens), row * style.MAX_ROWS / 2)] * 3, 36.0  # all three fit on one or two screens
    figure = stack_panels(names, heights=heights, gap=gap)
    for number, values in enumerate((first, second, third), start=1):
        figure.add_trace(
            parts.heatmap(
                values,
                hover=style.lines(
                    say("token_position", token="%{y}", place="%{y:d}"),
                    say("dimension", dimension="%{x}"),
                ),
                bar=style.colour_bar(say("positions.value_axis"), ypad=style.ABOVE_NAMES) if number == 1 else None,
                limit=limit,
                ygap=1,
            ),
            row=number,
        )
    style.finish(figure, height=stacked_height(heights, around=140, gap=gap), top=84)
    figure.update_yaxes(**style.token_rows(tokens, title=""))
    figure.update_yaxes(title_text=say("names.token"), row=2)
    figure.update_xaxes(showgrid=False, zeroline=False)
    figure.update_xaxes(title_text=say("dimension_axis", n=first.shape[1]), row=3)
    return figure.drawn()
