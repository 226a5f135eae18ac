"""Figures of one row of one head, step by step, and the output of all heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, as_probabilities, require_index, require_same_length
from charts.toolkit.sheet import Sheet, place_in_grid, stack_panels, stacked_height
from charts.toolkit.words import say

_SHORT_NAME, _PANEL_HEIGHT = 31, 220  # of a row on an image: letters of a name beside three others, pixels
_NUMBERED = 8  # rows or columns of patches up to which they are numbered

if TYPE_CHECKING:
    from transformer.runs.attention_view import AttentionView
    from transformer.text.tokens import TokenSequence


def score_pipeline(view: AttentionView, *, head: int, row: int, stretch: bool = False) -> go.Figure:
    """Draw the softmax of one query: all scores, unmasked scores, exponentials, and weights (0…1).

    ``view`` carries scores, mask and weights of a layer; ``head`` and ``row`` (the query's index) choose one row.
    Masked keys are hatched and have no score, exponential or weight. If no key is masked, the second panel would repeat
    the first and is left out. As in the model, the largest score is subtracted from all scores before the exponential:
    this changes no weight, and the largest exponential is 1. The axis of the weights is fixed to 0…1, or ends at the
    largest weight if ``stretch`` is set, which its title then says.
    """
    require_index(head, name="head", size=view.n_heads)
    require_index(row, name="row", size=len(view.query))
    scores = np.asarray(view.scores[head, row], dtype=np.float32)
    weights = np.asarray(view.weights[head, row], dtype=np.float32)
    masked = ~np.asarray(view.allowed[row], dtype=bool)
    left, shown = scores.copy(), weights.copy()
    left[masked] = np.nan
    shown[masked] = np.nan
    powers = left if masked.all() else np.exp(left - np.nanmax(left))
    end, note = parts.share_axis(shown, stretch=stretch)
    names = [say("attention.scores_unmasked")]
    if masked.any():
        hidden = say("attention.mask_hides", n=masked.sum(), keys=len(masked))
        names = [say("attention.scores_before_mask"), hidden]
    sum_of_powers = style.three_digits(float(np.nansum(powers)))
    names += [
        say("attention.powers", sum=sum_of_powers),
        say("attention.weights") + note,
    ]
    heights, gap = [72.0] * (len(names) - 1) + [90.0], 44.0  # all figures fit on one screen
    figure = stack_panels(names, heights=heights, gap=gap)
    of_powers, of_weights = len(names) - 1, len(names)
    places = np.arange(len(view.key))
    low, high = min(0.0, float(scores.min())), max(0.0, float(scores.max()))
    span = (high - low) or 1.0
    low, high = low - 0.06 * span * (low < 0), high + 0.06 * span
    of_scores = [
        (values, say("names.score"), parts.signed_colours(scores)) for values in (scores, left)[: len(names) - 2]
    ]
    for panel, (values, name, colours) in enumerate(
        (*of_scores, (powers, say("names.power"), style.BAR), (shown, say("names.weight"), style.BAR)), start=1
    ):
        figure.bar(
            x=places,
            y=values,
            marker={"color": colours, "line": {"width": 0}},
            text=[style.three_digits(float(value)) for value in values]
            if panel >= of_powers and len(places) <= 16
            else None,
            # There is no space above a bar near 1. "auto" for all would drop the number of a bar of height 0.
            textposition=["auto" if panel == of_weights and value > 0.8 * end else "outside" for value in values],
            textangle=0,
            cliponaxis=False,
            hovertemplate=style.hover(
                say("token_position", token="%{x}", place="%{x:d}"), f"{name} <b>%{{y:{style.EXACT}}}</b>"
            ),
            row=panel,
        )
        if panel > 1 and masked.any():
            bottom, top = (low, high) if panel == 2 else (0.0, 1.0 if panel == of_powers else end)
            figure.add_trace(
                parts.mask_bars(masked, low=bottom, high=top, showlegend=panel == 2, legendgroup="mask"),
                row=panel,
            )
    style.finish(figure, height=stacked_height(heights, around=116, gap=gap), top=48)
    figure.update_layout(barmode="overlay", legend={"x": 1, "xanchor": "right", "y": 1.02})
    figure.update_yaxes(title_text=say("names.score"), range=[low, high])
    with_numbers = [0, 1.2]  # leaves space for the numbers above the bars
    figure.update_yaxes(title_text=say("names.power"), range=with_numbers, row=of_powers)
    figure.update_yaxes(title_text=say("names.weight"), range=[0, end], row=of_weights)
    figure.update_xaxes(**style.token_axis(view.key, title=""))
    query = style.escape(view.query.labels[row])
    figure.update_xaxes(
        title_text=say("attention.key_axis", query=query, head=head),
        row=of_weights,
    )
    return figure.drawn()


def dot_product(
    query: Any, *, key: Any, query_token: str, key_token: str, bias: float | None = None, score: float | None = None
) -> go.Figure:
    """Draw the computation of a score: both vectors by channel, their products, the sum, the score.

    ``query``, ``key``: [channel], one head's vectors; the tokens are their displayed forms. ``bias``: what
    relative positions add to the score. ``score``: for a model that does not just divide the sum by √d_k.
    """
    first = as_array(query, name="query", axes=("channel",))
    second = as_array(key, name="key", axes=("channel",), sizes={"channel": len(first)})
    products = first * second
    total = float(products.sum(dtype=np.float64))
    own = total / np.sqrt(len(first)) + (bias or 0.0) if score is None else score
    numbers = {"sum": style.three_digits(total), "n": len(first), "score": style.three_digits(float(own))}
    sum_line = say("attention.score", **numbers)
    if score is not None:
        sum_line = say("attention.own_score", **numbers)
    elif bias is not None:
        numbers["bias"] = style.three_digits(bias)
        sum_line = say("attention.score_with_bias", **numbers)
    heights = [100.0, 100.0, 130.0]
    names = [
        say("attention.query_of", token=style.escape(query_token)),
        say("attention.key_of", token=style.escape(key_token)),
        sum_line,
    ]
    figure = stack_panels(names, heights=heights)
    channels = np.arange(len(first), dtype=np.int32)
    limit = 1.08 * style.symmetric_limit(first, second)
    for row, (values, name) in enumerate(((first, "q"), (second, "k"), (products, "q × k")), start=1):
        figure.bar(
            x=channels,
            y=values,
            marker={"color": parts.signed_colours(values), "line": {"width": 0}},
            hovertemplate=style.hover(say("names.channel", channel="%{x}"), f"{name} = <b>%{{y:{style.EXACT}}}</b>"),
            row=row,
        )
        figure.update_yaxes(title_text=name, row=row)
        if row < 3:
            figure.update_yaxes(range=[-limit, limit], row=row)
    style.finish(figure, height=stacked_height(heights, around=100), top=32)
    figure.update_xaxes(showgrid=False, range=[-0.5, len(first) - 0.5])
    figure.update_xaxes(title_text=say("attention.key_channel", n=len(first)), row=3)
    return figure.drawn()


def value_mix(weights: Any, *, values: Any, tokens: TokenSequence, shown: int = 6) -> go.Figure:
    """Draw a row's output as a sum: weight × value of every key, stacked channel by channel.

    ``weights``: [key], one row; ``values``: [key, channel]. The ``shown`` keys with the longest contribution
    ‖weight × value‖ each have a colour; all others are one grey sum, whose number of keys is in the legend.
    """
    sizes = {"key": len(tokens)}
    shares = as_probabilities(weights, name="weights", axes=("key",), sizes=sizes)
    vectors = as_array(values, name="values", axes=("key", "channel"), sizes=sizes)
    if not 1 <= shown < len(style.CATEGORICAL):
        raise ValueError(f"shown is {shown}; choose 1 to {len(style.CATEGORICAL) - 1} keys, one colour each")
    contributions = shares[:, None] * vectors
    order = np.argsort(-np.linalg.norm(contributions, axis=1), kind="stable")
    places = np.arange(vectors.shape[1], dtype=np.int32)
    rows = [
        (
            f"{style.escape(tokens.labels[key])} × {style.three_digits(float(shares[key]))}",
            contributions[key],
            style.category_colour(number),
        )
        for number, key in enumerate(sorted(order[:shown]))
    ]
    if len(tokens) > shown:
        rest = order[shown:]
        rows.append((say("names.other_tokens", n=len(rest)), contributions[rest].sum(axis=0), style.MASKED))
    figure = Sheet()
    for name, heights, colour in rows:
        figure.bar(
            x=places,
            y=heights,
            name=name,
            marker={"color": colour, "line": {"width": 0}},
            hovertemplate=style.hover(
                say("names.channel", channel="%{x}"), name, say("names.adds", value=style.exact("y"))
            ),
        )
    figure.scatter(
        x=places,
        y=contributions.sum(axis=0),
        mode="markers",
        name=say("names.head_output"),
        marker={"color": "white", "size": 9, "symbol": "diamond", "line": {"width": 2, "color": "black"}},
        hovertemplate=style.hover(
            say("names.channel", channel="%{x}"), say("names.output_value", value=style.exact("y"))
        ),
    )
    style.finish(figure, height=440, top=72)
    figure.update_layout(barmode="relative", bargap=0.15)
    figure.update_xaxes(title_text=say("names.value_channel", n=len(places)), showgrid=False)
    figure.update_yaxes(title_text=say("names.weight_times_value"))
    return figure.drawn()


def head_contributions(contributions: Any, *, bias: Any, output: Any, head: int) -> go.Figure:
    """Draw one token's output as a sum: every head's part, the bias b_O, and their sum, on one scale.

    ``contributions``: [head, model], head_h W_O,h; ``bias``, ``output``: [model]; ``head`` is framed. ``bias`` is
    ``None`` if the projection has none.
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
            hover=say("attention.place_dimension", place="%{y}", dimension="%{x}"),
            bar=style.colour_bar(say("written")),
            limit=style.symmetric_limit(rows),
            ygap=2,
        )
    )
    names = [say("names.numbered_head", head=index) for index in range(n_heads)]
    names += [say("names.bias_b_o"), say("names.sum_output")] if bias is not None else [say("names.sum_output")]
    style.finish(figure, height=style.rows_height(len(names)), top=64)
    figure.update_yaxes(**style.label_rows(names, title=say("part_sum")))
    figure.update_xaxes(title_text=say("stream_dimension", n=d_model), showgrid=False, zeroline=False)
    box = {"x0": -0.5, "x1": d_model - 0.5, "y0": head - 0.5, "y1": head + 0.5}
    figure.add_shape(type="rect", **box, line={"color": style.CHOSEN, "width": 3})
    figure.add_hline(y=len(names) - 1.5, line={"color": style.NEUTRAL, "width": 2})
    return figure.drawn()


def row_on_picture(
    weights: Any, *, picture: str, names: Sequence[str], labels: Sequence[str], stretch: bool = False
) -> go.Figure:
    """Draw one query's row of every head over the image: the colour of a patch is its weight.

    ``weights``: [head, row of patches, column of patches], 0…1; ``picture`` is the image as an address that contains
    it; ``names`` are those of the panels, ``labels`` those of the patches in reading order. The scale is fixed to 0…1,
    or ends at the largest weight with ``stretch``, as the scale then says.
    """
    values = as_array(weights, name="weights", axes=("head", "row", "column"), signed=False)
    require_same_length("names", names, expected=len(values), of="heads")
    n_rows, n_columns = values.shape[1:]
    require_same_length("labels", labels, expected=n_rows * n_columns, of="patches")
    end, note = parts.share_axis(values, stretch=stretch)
    across = min(len(values), 4 if max(map(len, names)) <= _SHORT_NAME else 3)
    figure = place_in_grid([style.escape(name) for name in names], across=across)
    texts = [[style.escape(label) for label in labels[row * n_columns :][:n_columns]] for row in range(n_rows)]
    few = max(n_rows, n_columns) <= _NUMBERED
    for place, head in enumerate(values):
        row, col = divmod(place, across)
        panel = {"row": row + 1, "col": col + 1}
        bar = style.colour_bar(say("names.weight") + note, ypad=style.ABOVE_NAMES) if place == across - 1 else None
        shown = parts.heatmap(head, hover="%{text}", bar=bar, maximum=end, text=texts, opacity=0.72)
        figure.add_trace(shown, **panel)
        figure.add_image(picture, x=-0.5, y=-0.5, sizex=n_columns, sizey=n_rows, sizing="stretch", **panel)
        plain = {"fixedrange": True, "showgrid": False, "zeroline": False, "constrain": "domain"}
        anchor = f"x{place + 1 if place else ''}"
        figure.update_yaxes(
            **panel, **plain, scaleanchor=anchor, range=[n_rows - 0.5, -0.5], showticklabels=few and not col
        )
        figure.update_xaxes(**panel, **plain, range=[-0.5, n_columns - 0.5], showticklabels=few)
    style.finish(figure, height=80 + _PANEL_HEIGHT * -(-len(values) // across), top=80)
    figure.update_yaxes(tickvals=list(range(n_rows)), ticktext=[str(place + 1) for place in range(n_rows)])
    figure.update_xaxes(tickvals=list(range(n_columns)), ticktext=[str(place + 1) for place in range(n_columns)])
    if few:
        figure.update_yaxes(row=1, col=1, title_text=say("attention.row_patches"))
        figure.update_xaxes(row=-(-len(values) // across), col=1, title_text=say("attention.column_patches"))
    return figure.drawn()
