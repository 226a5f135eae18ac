"""Queries and keys of one head as points of a plane; a query is close to the keys it attends to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _
from transformer.text.message import N_

if TYPE_CHECKING:
    from transformer.text.tokens import Token

COLOURS = ("position", "word", "kind")
_SIDES = (N_("query"), N_("key"))
_SYMBOLS = ("circle", "diamond-open")
_SHOWN_WORDS = 6  # the most frequent words, which have their own colour


def query_key_space(
    coordinates: Any,
    *,
    tokens: Sequence[Token],
    n_queries: int,
    colour: str = "position",
    explained: tuple[float, ...] = (),
) -> go.Figure:
    """Draw the queries and keys of a head as points in a plane.

    ``coordinates``: [point, 2], first the ``n_queries`` queries, then the keys; ``tokens``: one for each point.
    ``colour``: "position" in the sentence, "word" (the most frequent ones), or "kind" of token. ``explained``: the
    share of the variance along each axis, 0…1.
    """
    points = as_array(coordinates, name="coordinates", axes=("point", "component"), sizes={"component": 2})
    require_same_length("tokens", tokens, expected=len(points), of="points")
    if colour not in COLOURS:
        raise ValueError(f"colour is {colour!r}; choose from {', '.join(COLOURS)}")
    is_query = np.arange(len(points)) < n_queries
    figure = Sheet()
    groups = _positions(tokens) if colour == "position" else _groups(_names(tokens, colour))
    for group, (name, marker, chosen) in enumerate(groups):
        for side, symbol in enumerate(_SYMBOLS):
            places = np.nonzero(chosen & (is_query if side == 0 else ~is_query))[0]
            own = {key: np.asarray(value)[places] if key == "color" and colour == "position" else value
                   for key, value in marker.items()}  # fmt: skip
            if side:
                own.pop("colorbar", None)
            figure.scatter(
                x=points[places, 0],
                y=points[places, 1],
                mode="markers",
                name=f"{_(_SIDES[side])} · {name}" if name else _(_SIDES[side]),
                marker={"size": 7, "symbol": symbol, "line": {"width": 1}, **own, "showscale": side == group == 0}
                if colour == "position"
                else {"size": 7, "symbol": symbol, "line": {"width": 1}, **own},
                text=[_said(tokens[place], side) for place in places],
                hovertemplate="%{text}<extra></extra>",
            )
    style.finish(figure, height=470, top=64)
    figure.update_layout(hovermode="closest")
    shares = [f" ({style.percent_digits(share)})" for share in explained] or ["", ""]
    figure.update_xaxes(title_text=_("first principal component") + shares[0], zeroline=False)
    figure.update_yaxes(
        title_text=_("second principal component") + shares[1], zeroline=False, scaleanchor="x", constrain="domain"
    )
    return figure.drawn()


def _positions(tokens: Sequence[Token]) -> list[tuple[str, dict, np.ndarray]]:
    places = [token.index for token in tokens]
    marker = {
        "color": places,
        "colorscale": style.colour_scale(style.SEQUENTIAL[3:]),
        "cmin": 0,
        "cmax": max(1, *places),
        "colorbar": style.colour_bar(_("position")),
    }
    return [("", marker, np.ones(len(tokens), dtype=bool))]


def _groups(names: Sequence[str]) -> list[tuple[str, dict, np.ndarray]]:
    """Return each name with a colour, frequent ones first; unnamed ones ("") are grey and at the back."""
    found = [name for name, _count in Counter(filter(None, names)).most_common()]
    groups = [(style.escape(name), {"color": style.category_colour(index)}) for index, name in enumerate(found)]
    groups = [(_("others"), {"color": style.QUIET}), *groups] if "" in names else groups
    return [
        (label, marker, np.array([name == key for name in names]))
        for (label, marker), key in zip(groups, ([""] if "" in names else []) + found, strict=True)
    ]


def _names(tokens: Sequence[Token], colour: str) -> list[str]:
    if colour == "word":
        often = {word for word, _count in Counter(token.display for token in tokens).most_common(_SHOWN_WORDS)}
        return [token.display if token.display in often else "" for token in tokens]
    return [_kind(token) for token in tokens]


def _kind(token: Token) -> str:
    if token.special:
        return _("special token")
    if not any(letter.isalnum() for letter in token.display):
        return _("punctuation")
    return _("beginning of a word") if token.starts_word else _("rest of a word")


def _said(token: Token, side: int) -> str:
    shown = style.escape(token.display)
    return _("{side}: {token} at position {position}", side=_(_SIDES[side]), token=shown, position=token.index)
