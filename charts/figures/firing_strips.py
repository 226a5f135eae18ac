"""Examples of where a head or a unit is most active, one sentence per row, centred on that token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import require_index, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    from transformer.text.tokens import TokenSequence

AROUND = 6  # tokens on either side
_LONGEST = 11  # letters of a token in its cell; hover shows all of them


def firing_strips(
    values: Sequence[Any],
    *,
    tokens: Sequence[TokenSequence],
    places: Sequence[int],
    marked: Sequence[int | None],
    rows: Sequence[str],
    what: str,
    title: str,
    signed: bool = False,
) -> go.Figure:
    """Draw one strip per sentence.

    Args:
        values: For each row one number per token, [key].
        tokens: Tokens of each row.
        places: Index of the token in the middle.
        marked: Index of a framed token, the query, if it is in the same sentence.
        rows: Label of each row.
        what: Name of the numbers.
        title: Title above the rows.
        signed: Whether numbers can be negative; otherwise they are from 0 to 1.
    """
    for name, given in (("tokens", tokens), ("places", places), ("marked", marked), ("rows", rows)):
        require_same_length(name, given, expected=len(values), of="rows")
    width = 2 * AROUND + 1
    window = np.full((len(values), width), np.nan, dtype=np.float32)
    texts = [[""] * width for _row in values]
    hovers = [[""] * width for _row in values]
    frames = []
    for row, (numbers, read, place, mark) in enumerate(zip(values, tokens, places, marked, strict=True)):
        require_index(place, name=f"the place of row {row}", size=len(read))
        require_same_length(f"the numbers of row {row}", numbers, expected=len(read), of="tokens")
        for index in range(max(0, place - AROUND), min(len(read), place + AROUND + 1)):
            column, display = index - place + AROUND, read[index].display
            window[row, column] = numbers[index]
            texts[row][column] = style.escape(style.shorten(display, _LONGEST))
            hovers[row][column] = style.escape(read.labels[index])
            if index == mark:
                frames.append((row, column))
    known, what = window[np.isfinite(window)], localize(what)
    hover, limit = style.lines("%{y}", "%{text}", what), style.symmetric_limit(known) if signed else None
    trace = parts.heatmap(window, hover=hover, bar=style.colour_bar(what), limit=limit, text=hovers, xgap=1, ygap=1)
    figure = Sheet(trace, parts.cell_texts(trace, texts=texts))
    style.finish(figure, height=style.rows_height(len(values), around=110), top=52)
    bare = {"showticklabels": False, "showgrid": False, "fixedrange": True}
    figure.update_xaxes(**bare, title_text=say("middle_token"), range=[-0.5, width - 0.5])
    figure.update_yaxes(**style.label_rows(rows, title=localize(title)))
    boxes = [(row, AROUND, style.CHOSEN, "solid") for row in range(len(values))]
    for row, column, colour, dash in [*boxes, *((*frame, style.NEUTRAL, "dot") for frame in frames)]:
        line = {"color": colour, "width": 2, "dash": dash}
        figure.add_box((column - 0.48, column + 0.48), (row - 0.46, row + 0.46), line=line)
    return figure.drawn()
