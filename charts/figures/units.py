"""Figures of the feed-forward layer: hidden units per token, the inactive share, units and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, as_probabilities, require_index, require_same_length
from charts.toolkit.numbers import whole
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence

_STRIP, _LINE, _AROUND = 44, 24, 158  # pixels: a strip with the line above it, that line, and all around the strips
_BESIDE = 240  # pixels: the height of figures beside each other
_FEW_TOKENS = 16  # the most tokens for which the focused column shows numbers
_LONGEST = 14  # characters of a word that are shown; the hover has all


def hidden_heatmap(
    values: Any, *, tokens: TokenSequence, units: Sequence[int] | None = None, name: str = "pre-activation"
) -> go.Figure:
    """Draw hidden units of every token, token × unit.

    ``values``: [token, unit], before or after the activation; ``units``: the number of each column's unit if only some
    are shown. Values that can be negative are diverging around 0; a ReLU's output (nothing below 0) is sequential.
    """
    array = as_array(values, name="values", axes=("token", "unit"), sizes={"token": len(tokens)})
    n_units = array.shape[1]
    signed = bool((array < 0).any())
    if units is not None:
        require_same_length("units", units, expected=n_units, of="columns of values")
    figure = Sheet(
        parts.heatmap(
            array,
            hover=style.lines(
                say("token_position", token="%{y}", place="%{y:d}"), say("feed_forward.unit", unit="%{x}")
            ),
            bar=style.colour_bar(localize(name)),
            limit=style.symmetric_limit(array) if signed else None,
            maximum=style.symmetric_limit(array),
            ygap=1,
        )
    )
    style.finish(figure, height=style.rows_height(len(tokens)), top=64)
    figure.update_yaxes(**style.token_rows(tokens, title=say("names.token")))
    if units is None:
        figure.update_xaxes(title_text=say("feed_forward.all_units", n=n_units), showgrid=False, zeroline=False)
    else:
        figure.update_xaxes(**style.label_axis([str(unit) for unit in units], title=say("feed_forward.some_units")))
    return figure.drawn()


def silent_units(share: Any, *, tokens: TokenSequence, layers: Sequence[str]) -> go.Figure:
    """Draw the inactive share of hidden units (ReLU: exactly 0) for each token, one bar per layer, 0…1.

    ``share``: [layer, token]; ``layers``: the name of each layer.
    """
    sizes = {"layer": len(layers), "token": len(tokens)}
    values = as_probabilities(share, name="share", axes=("layer", "token"), sizes=sizes)
    figure = Sheet()
    for layer, (name, row) in enumerate(zip(layers, values, strict=True)):
        figure.bar(
            x=np.arange(len(tokens)),
            y=row,
            name=style.escape(name),
            marker={"color": style.category_colour(layer), "line": {"width": 0}},
            hovertemplate=(
                style.hover(f"%{{x}}, {style.escape(name)}", say("feed_forward.inactive_share", share=style.exact("y")))
            ),
            showlegend=len(layers) > 1,
        )
    style.finish(figure, height=360, top=44)
    figure.update_xaxes(**style.token_axis(tokens, title=say("names.token")))
    figure.update_yaxes(title_text=say("feed_forward.inactive_axis"), range=[0, 1])
    return figure.drawn()


def strongest_bars(hidden: Any, *, token: str, top: int = 12, name: str = "hidden value") -> go.Figure:
    """Draw the units with the largest absolute value for one token, strongest on top.

    ``hidden``: [unit], all units of the token; ``token``: its displayed form.
    """
    values = as_array(hidden, name="hidden", axes=("unit",))
    if top < 1:
        raise ValueError(f"top is {top}; show at least 1 unit")
    units = np.argsort(-np.abs(values), kind="stable")[:top]
    strongest = values[units]
    colours = parts.signed_colours(strongest) if (values < 0).any() else style.BAR
    figure = Sheet(parts.bar_rows(strongest, hover=say("feed_forward.unit", unit="%{y}"), colours=colours))
    style.finish(figure, height=style.rows_height(len(units), around=60))
    figure.update_layout(margin_r=48)
    # Two lines, so that the title fits a narrow window.
    title = style.lines(
        say("feed_forward.name_for_token", name=localize(name), token=style.escape(token)),
        say("feed_forward.strongest", shown=len(units), n=whole(len(values))),
    )
    figure.update_xaxes(title_text=title, range=parts.bar_range(strongest, share=0.1))
    figure.update_yaxes(**style.label_rows([str(unit) for unit in units], title=say("names.unit")))
    return figure.drawn()


def unit_writes(pieces: Sequence[str], *, effects: Sequence[float], unit: int, axis: str = "") -> go.Figure:
    """Draw the words that a hidden unit makes more probable (right) and less probable (left).

    ``pieces``: the words as they are displayed; ``effects``: what the unit adds to the logit of each. If the effect is
    another quantity, ``axis`` is its name.
    """
    require_same_length("effects", effects, expected=len(pieces), of="pieces")
    order = sorted(range(len(pieces)), key=lambda place: -effects[place])
    values = np.asarray([effects[place] for place in order], dtype=np.float32)
    figure = Sheet(parts.bar_rows(values, hover="%{y}", colours=parts.signed_colours(values)))
    style.finish(figure, height=style.rows_height(len(values), around=60))
    figure.update_layout(margin_r=48)
    axis = axis or say("feed_forward.logit_axis", unit=unit)
    figure.update_xaxes(title_text=style.escape(axis), range=parts.bar_range(values))
    figure.update_yaxes(**style.label_rows([pieces[place] for place in order], title=say("names.token")))
    return figure.drawn()


def unit_firing(hidden: Any, *, tokens: TokenSequence, followed: int) -> go.Figure:
    """Draw the values of one unit as a bar per token, the followed token's in another colour.

    ``hidden``: [token].
    """
    values = as_array(hidden, name="hidden", axes=("token",), sizes={"token": len(tokens)})
    require_index(followed, name="followed", size=len(tokens))
    colours = [style.CHOSEN if place == followed else style.BAR for place in range(len(values))]
    texts = [style.three_digits(float(value)) if place == followed else "" for place, value in enumerate(values)]
    figure = Sheet()
    figure.bar(
        x=np.arange(len(values)),
        y=values,
        marker={"color": colours, "line": {"width": 0}},
        text=texts,
        textposition="outside",
        textfont={"size": style.TEXT_SIZE + 2},
        textangle=0,
        constraintext="none",  # narrow bars on a phone would shrink the number
        cliponaxis=False,
        hovertemplate=style.hover("%{x}", style.exact("y")),
    )
    style.finish(figure, height=_BESIDE)
    figure.update_xaxes(**style.token_axis(tokens, title=""))
    figure.update_xaxes(tickfont_size=style.TEXT_SIZE + 1)
    figure.update_yaxes(
        title_text=say("names.hidden_value"),
        range=parts.bar_range(values),
        nticks=4,
        zeroline=True,
        zerolinecolor=style.NEUTRAL,
    )
    return figure.drawn()


def unit_promotes(effects: Any, *, words: Sequence[str], axis: str) -> go.Figure:
    """Draw the words that one unit promotes as horizontal bars.

    ``effects``: [word], from the top. ``axis`` names them.
    """
    values = as_array(effects, name="effects", axes=("word",))
    require_same_length("words", words, expected=len(values), of="effects")
    figure = Sheet(parts.bar_rows(values, hover="%{y}", colours=style.CHOSEN))
    style.finish(figure, height=_BESIDE)
    figure.update_layout(margin_r=48)
    figure.update_xaxes(title_text=style.escape(axis), range=parts.bar_range(values), nticks=4)
    figure.update_yaxes(**style.label_rows(words, title=""))
    figure.update_yaxes(tickfont_size=style.TEXT_SIZE + 5)
    return figure.drawn()


def probabilities_changed(before: Any, *, after: Any, names: Sequence[str], axis: str) -> go.Figure:
    """Draw by how much one unit changes the probabilities of tokens or classes.

    ``before``, ``after``: with the unit and without it, [name], from the top; ``axis`` names their difference.
    """
    sizes = {"name": len(names)}
    with_it = as_probabilities(before, name="before", axes=("name",), sizes=sizes)
    without = as_probabilities(after, name="after", axes=("name",), sizes=sizes)
    change = with_it - without
    hover = style.lines(
        "%{y}",
        f"{say('feed_forward.with_unit')} %{{customdata[0]}}",
        f"{say('feed_forward.without_unit')} %{{customdata[1]}}",
    )
    bars = parts.bar_rows(change, hover=hover, colours=parts.signed_colours(change))
    shares = [style.three_digits_alike([float(one), float(other)]) for one, other in zip(with_it, without, strict=True)]
    figure = Sheet({**bars, "customdata": shares})
    style.finish(figure, height=_BESIDE)
    figure.update_layout(margin_r=48)
    figure.update_xaxes(title_text=style.escape(axis), range=parts.bar_range(change, share=0.25), nticks=4)
    figure.update_yaxes(**style.label_rows(names, title=""))
    figure.update_yaxes(tickfont_size=style.TEXT_SIZE + 5)
    return figure.drawn()


def units_and_words(
    hidden: Any,
    *,
    tokens: TokenSequence,
    followed: int,
    units: Sequence[str],
    words: Sequence[str],
    value: str,
) -> go.Figure:
    """Draw a strip of cells per unit, one cell per token, below the unit's words and its name.

    ``hidden``: [unit, token], the rows of ``units``; ``followed``: the token whose cells are framed; ``words``: the
    beginning of each line. ``value`` names the colours.
    """
    values = as_array(hidden, name="hidden", axes=("unit", "token"), sizes={"token": len(tokens)})
    require_same_length("units", units, expected=len(values), of="rows of hidden")
    require_same_length("words", words, expected=len(values), of="rows of hidden")
    require_index(followed, name="followed", size=len(tokens))
    largest, rows = style.symmetric_limit(values), np.arange(len(values))
    cells = parts.heatmap(
        values,
        hover="%{y}<br>%{x}",
        bar=style.colour_bar(value),
        limit=largest if (values < 0).any() else None,
        maximum=largest,
        xgap=1,
        ygap=_LINE,
    )
    figure = Sheet(cells)
    if len(tokens) <= _FEW_TOKENS:
        texts = [["" if place != followed else text for place in range(len(tokens))] for text in
                 style.three_digits_alike(values[:, followed])]  # fmt: skip
        figure.add_trace(parts.cell_texts(cells, texts=texts))
    style.finish(figure, height=_STRIP * len(values) + _AROUND, top=80)  # the toolbar of the figure is above the scale
    half = 0.5 * (1 - _LINE / _STRIP)  # of a strip, in rows
    for row, (unit, line) in enumerate(zip(units, words, strict=True)):
        at = {"x": 0, "xref": "paper", "xanchor": "left", "y": row - half, "yanchor": "bottom"}
        figure.add_annotation(
            text=f"<b>{style.escape(line)}</b>  ({style.escape(unit)})", **at, font_size=style.TEXT_SIZE + 1
        )
        box = {"x0": followed - 0.5, "x1": followed + 0.5, "y0": row - half, "y1": row + half}
        figure.add_shape(type="rect", **box, line={"color": style.CHOSEN, "width": 3})
    figure.update_xaxes(**style.token_axis(tokens, title=""))
    names = [style.escape(unit) for unit in units]
    shared: dict[str, Any] = {
        "range": [len(values) - 0.5, -0.62],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }
    figure.update_yaxes(**shared, tickmode="array", tickvals=rows.tolist(), ticktext=names, showticklabels=False)
    figure.update_layout(margin_l=8)
    return figure.drawn()


def line_of(pieces: Sequence[str]) -> str:
    """Return the words of one unit in a row; long ones are cut."""
    return ", ".join(piece if len(piece) <= _LONGEST else f"{piece[: _LONGEST - 1]}…" for piece in pieces)
