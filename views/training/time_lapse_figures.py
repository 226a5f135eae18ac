"""One sentence through training: a head's map and the role of every head, at every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import require_columns, require_index, require_same_length
from charts.toolkit.head_names import head_name
from charts.toolkit.sheet import Sheet, place_side_by_side
from charts.toolkit.words import _

if TYPE_CHECKING:
    import pandas as pd

    from transformer.runs.attention_view import AttentionView

ROLE_COLOURS = {
    "previous": style.CATEGORICAL[0],
    "next": style.CATEGORICAL[4],
    "same": style.CATEGORICAL[2],
    "sink": style.CATEGORICAL[1],
    "punctuation": style.CATEGORICAL[6],
    "repeated": "#8C5A2B",
    "first": style.CATEGORICAL[5],
    "diagonal": style.CATEGORICAL[3],
    "monotone": "#7B3F6B",
    "induction": "#8A8A00",
}
_FAINT, _STRONG = 0.06, 0.95  # opacity of the grey of a head without a role: attends everywhere … to one token
MAX_CELLS = 96  # cells of a small map along each side
_MAX_LABELS = 24  # largest number of rows that have labels
COLUMNS = ("group", "layer", "head", "moment", "role", "role_name", "score", "spread")


def map_strip(
    views: Sequence[AttentionView], *, head: int, names: Sequence[str], notes: Sequence[str], chosen: int
) -> go.Figure:
    """Draw the map of one head at every step, side by side on the same scale 0…1; masked cells are grey.

    Args:
        views: One layer at every step, with the same tokens. With more than ``MAX_CELLS`` tokens, a point of a small
            map is the largest of several weights, as the title of the colour bar says.
        head: Index of the head.
        names: Titles above the maps.
        notes: Second lines of the titles.
        chosen: Index of the framed map.
    """
    if not views:
        raise ValueError("views has 0 entries, so there is nothing to draw; give one for each step")
    first = views[0]
    for label, values in (("names", names), ("notes", notes)):
        require_same_length(label, values, expected=len(views), of="views")
    require_index(head, name="head", size=first.n_heads)
    require_index(chosen, name="chosen", size=len(views))
    if any(view.query.ids != first.query.ids or view.key.ids != first.key.ids for view in views):
        raise ValueError("views have different tokens; every step must have read the same sentence")
    n_queries, n_keys = first.allowed.shape
    figure = place_side_by_side([style.escape(name) for name in names], spacing=0.012)
    figure.update_annotations(yshift=20)
    for column, (view, note) in enumerate(zip(views, notes, strict=True), start=1):
        weights, places, bar_note = _small(np.where(view.allowed, view.weights[head], np.nan).astype(np.float32))
        bar = style.colour_bar(bar_note, len=0.2, y=0, yanchor="top", ypad=8) if column == 1 else None
        hover = style.lines(
            style.escape(names[column - 1]),
            _("{token} looks at {other}", token="%{y}", other="%{x}"),
            *filter(None, [bar_note]),
        )
        figure.add_trace(parts.heatmap(weights, hover=hover, bar=bar, **places), col=column)
        if not view.allowed.all():
            figure.add_trace({**_masked(np.isnan(weights)), **places}, col=column)
        place = {"xref": f"x{_suffix(column)} domain", "yref": f"y{_suffix(column)} domain"}
        figure.add_annotation(
            text=style.escape(note), x=0, y=1, **place, xanchor="left", yanchor="bottom", yshift=2, name="note"
        )
        figure.update_xaxes(col=column, **style.token_axis(first.key, title=""))
        figure.update_yaxes(col=column, **style.token_rows(first.query, title=""))
    figure.update_xaxes(showticklabels=False)
    rows_labelled = n_queries <= _MAX_LABELS
    figure.update_yaxes(col=1, title_text=_("query"), showticklabels=rows_labelled)
    figure.update_xaxes(col=(len(views) + 1) // 2, title_text=_("key: the token that is looked at"), title_standoff=6)
    row = min(24.0, max(2.0, 150 / n_queries)) if not rows_labelled else min(24.0, max(14.0, 150 / n_queries))
    style.finish(figure, height=n_queries * row + 92, top=44)
    for note in (a for a in figure.layout["annotations"] if a.get("name") == "note"):
        note["font"] = {"size": style.TICK_SIZE}
    frame = {"x0": -0.5, "x1": n_keys - 0.5, "y0": -0.5, "y1": n_queries - 0.5, "name": "focus"}
    refs = {"xref": f"x{_suffix(chosen + 1)}", "yref": f"y{_suffix(chosen + 1)}"}
    figure.add_shape(type="rect", **frame, **refs, line={"color": style.CHOSEN, "width": 4})
    return figure.drawn()


def _small(weights: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray], str]:
    """Return a map that fits a small figure: the largest weight of each block.

    Returns:
        The map, [query, key] (NaN where all cells are masked), the positions of the blocks, and a note about it (""
        if every cell is shown).
    """
    blocks = [2 * int(np.ceil(count / MAX_CELLS) // 2) + 1 if count > MAX_CELLS else 1 for count in weights.shape]
    if blocks == [1, 1]:
        return weights, {}, ""
    (rows, columns), (high, wide) = weights.shape, blocks
    padded = np.full((-(-rows // high) * high, -(-columns // wide) * wide), -np.inf, dtype=weights.dtype)
    padded[:rows, :columns] = np.where(np.isnan(weights), -np.inf, weights)
    largest = padded.reshape(len(padded) // high, high, -1, wide).max(axis=(1, 3))
    # A block with an odd number of tokens has a middle one, whose position represents the block.
    places = {
        name: np.arange(count) * block + block // 2
        for name, count, block in zip("yx", largest.shape, blocks, strict=True)
    }
    return (
        np.where(np.isneginf(largest), np.nan, largest),
        places,
        _("the largest of {high} × {wide} weights", high=high, wide=wide),
    )


def _masked(masked: np.ndarray) -> dict:
    """Return a layer that is grey where the mask forbids attention."""
    return {
        "type": "heatmap",
        "z": np.where(masked, 1.0, np.nan).astype(np.float32),
        "colorscale": [[0, style.QUIET], [1, style.QUIET]],
        "showscale": False,
        "hoverongaps": False,
        "hovertemplate": style.hover(_("masked: cannot be attended to")),
    }


def role_timeline(
    heads: pd.DataFrame, *, groups: Sequence[str], moments: Sequence[str], current: int, chosen: tuple | None = None
) -> go.Figure:
    """Draw every head at every step: a panel per kind of attention, a row per head, a column per step.

    A head with a role has the colour of the role; one without is grey, darker if its attention is sharper. The markers
    carry ``customdata`` [group, layer, head, moment].

    Args:
        heads: One row per head and step, with the columns ``group`` and ``moment`` (indices into ``groups`` and
            ``moments``), ``layer``, ``head``, ``role`` (a key of ``ROLE_COLOURS``, or any other name for no role),
            ``role_name``, ``score`` (of the role) and ``spread`` (entropy ÷ its maximum, 0…1).
        groups: Names of the panels.
        moments: Names of the steps.
        current: Index of the framed step.
        chosen: The framed row: (group, layer, head).
    """
    require_columns(heads, name="heads", columns=COLUMNS)
    require_index(current, name="current", size=len(moments))
    n_heads = int(heads["head"].max()) + 1
    n_layers = int(heads["layer"].max()) + 1
    n_rows = n_layers * n_heads
    figure = place_side_by_side([style.escape(group) for group in groups], spacing=0.02)
    for index in range(len(groups)):
        _add_group(figure, heads[heads["group"] == index], column=index + 1, shape=(n_layers, n_heads, len(moments)))
        figure.update_xaxes(col=index + 1, **style.label_axis(list(moments), title=""))
        figure.update_yaxes(col=index + 1, **style.label_rows(_row_names(n_layers, n_heads), title=""))
        for layer in range(1, n_layers):
            line = {"color": style.NEUTRAL, "width": 1}
            figure.add_hline(y=layer * n_heads - 0.5, line=line, col=index + 1)
        box = {"x0": current - 0.5, "x1": current + 0.5, "y0": -0.5, "y1": n_rows - 0.5, "name": "focus"}
        figure.add_shape(type="rect", **box, **_axes(index + 1), line={"color": style.CHOSEN, "width": 2})
    figure.update_xaxes(col=(len(groups) + 1) // 2, title_text=_("training step"))
    figure.update_yaxes(col=1, title_text=_("layer.head"))
    if chosen is not None:
        group, layer, head = chosen
        require_index(group, name="chosen group", size=len(groups))
        row = require_index(layer * n_heads + head, name="chosen row", size=n_rows)
        box = {"x0": -0.5, "x1": len(moments) - 0.5, "y0": row - 0.5, "y1": row + 0.5, "name": "focus"}
        figure.add_shape(type="rect", **box, **_axes(group + 1), line={"color": style.CHOSEN, "width": 4})
    found = heads.drop_duplicates("role").set_index("role")["role_name"]
    _add_legend(figure, {role: found[role] for role in ROLE_COLOURS if role in found})
    style.finish(figure, height=min(20.0, max(6.0, 440 / n_rows)) * n_rows + 150, top=90)
    figure.update_layout(legend_y=1.06, dragmode=False, clickmode="event+select")
    return figure.drawn()


def _add_group(figure: Sheet, heads: pd.DataFrame, *, column: int, shape: tuple[int, int, int]) -> None:
    """Draw the cells of one panel, and invisible markers, which Plotly needs to report clicks.

    ``shape`` holds the numbers of layers, heads and moments; a stack with fewer layers has empty rows.
    """
    n_layers, n_heads, n_moments = shape
    codes = np.full((n_layers * n_heads, n_moments), np.nan, dtype=np.float32)
    places = list(ROLE_COLOURS)
    rows = (heads["layer"] * n_heads + heads["head"]).to_numpy()
    for row, (_place, cell) in zip(rows, heads.iterrows(), strict=True):
        sharp = 0.0 if np.isnan(cell["spread"]) else min(1.0, max(0.0, 1.0 - float(cell["spread"])))
        known = cell["role"] in ROLE_COLOURS
        codes[row, cell["moment"]] = 1.5 + places.index(cell["role"]) if known else sharp
    figure.add_trace(
        {
            "type": "heatmap", "z": codes, "zmin": 0.0, "zmax": 1.0 + len(places), "colorscale": _colours(),
            "showscale": False, "hoverinfo": "skip", "xgap": 1, "ygap": 1,
        },
        col=column,
    )  # fmt: skip
    hover = [
        style.lines(head_name(cell.layer, cell.head), style.escape(cell.role_name))
        + (f" ({style.three_digits(cell.score)})" if np.isfinite(cell.score) else "")
        + (
            style.lines("", _("entropy ÷ maximum {value}", value=style.three_digits(cell.spread)))
            if np.isfinite(cell.spread)
            else ""
        )
        for cell in heads.itertuples()
    ]
    figure.scatter(
        x=heads["moment"].to_numpy(),
        y=rows,
        mode="markers",
        marker={"size": 18, "symbol": "square", "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        # arrays would come back in another form
        customdata=heads[["group", "layer", "head", "moment"]].to_numpy().tolist(),
        text=hover,
        hovertemplate=style.hover(_("step {step}", step="%{x}"), "%{text}"),
        col=column,
    )


def _colours() -> list:
    """Return the colour scale: shades of grey for heads without a role, then one flat colour per role."""
    last = 1.0 + len(ROLE_COLOURS)
    scale = [[0.0, f"rgba(128,128,128,{_FAINT})"], [1.0 / last, f"rgba(128,128,128,{_STRONG})"]]
    for place, colour in enumerate(ROLE_COLOURS.values()):
        scale += [[(1.0 + place) / last, colour], [(2.0 + place) / last, colour]]
    return scale


def _add_legend(figure: Sheet, roles: Mapping[str, str]) -> None:
    entries = [(name, ROLE_COLOURS[role], 1.0) for role, name in roles.items()]
    entries += [
        (_("no clear role: looks everywhere"), style.NEUTRAL, 0.2),
        (_("… at only a few tokens"), style.NEUTRAL, 0.85),
    ]
    for name, colour, opacity in entries:
        marker = {"symbol": "square", "size": 14, "color": colour, "opacity": opacity}
        figure.scatter(x=[None], y=[None], mode="markers", name=style.escape(name), marker=marker)


def _row_names(n_layers: int, n_heads: int) -> list[str]:
    return [f"{layer}.{head}" for layer in range(n_layers) for head in range(n_heads)]


def _axes(column: int) -> dict[str, str]:
    return {"xref": f"x{_suffix(column)}", "yref": f"y{_suffix(column)}"}


def _suffix(column: int) -> str:
    return "" if column == 1 else str(column)
