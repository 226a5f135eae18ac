"""Any figure as a table of what it draws, row by row, for readers who cannot see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np

from charts.toolkit.words import say

if TYPE_CHECKING:  # a third of a second to import, and most pages need only one of them
    import altair as alt
    import pandas as pd
    import plotly.graph_objects as go

_BREAK = re.compile(r"<br\s*/?>")
_TAG = re.compile(r"</?[a-z]+[^<>]*>")


def figure_table(figure: go.Figure | alt.TopLevelMixin) -> pd.DataFrame:
    """Return the data of a Plotly or Altair figure, one row per bar, point or cell, with every digit.

    Columns of a Plotly figure: ``panel`` and ``series`` if there are several, then the titles of its axes (``x`` and
    ``y`` if panels differ), ``value`` for what colour shows, ``text`` and ``hover`` for what is written. Positions with
    a label are given as that label. Columns of an Altair figure: the encoded fields, by their titles.
    """
    import pandas as pd

    if type(figure).__module__.split(".", 1)[0] == "altair":
        return _altair_table(figure.to_dict())
    layout = figure.layout.to_plotly_json()  # type: ignore[union-attr]  # altair has returned above
    traces = [trace for trace in figure.data if trace.visible is not False]
    # Traces without hover only connect what is drawn.
    traces = [trace for trace in traces if trace.hoverinfo != "skip"] or traces
    titles = {letter: _shared_title(layout, traces, letter) for letter in "xy"}
    panels = _panel_names(layout)
    tables = [pd.DataFrame(dict(_columns(trace, layout, titles, panels))) for trace in traces]
    table = pd.concat([one for one in tables if len(one)] or [pd.DataFrame()], ignore_index=True)
    # If neither is there, a line is interrupted: nothing is drawn.
    table = table.dropna(how="all", subset=[title for title in titles.values() if title in table], ignore_index=True)
    # If one panel has labels and another has numbers on the same axis, a column has one type.
    for name in [name for name in table if table[name].dtype == object]:
        if table[name].map(lambda cell: isinstance(cell, str)).any():
            table[name] = table[name].map(str, na_action="ignore")
    alike = [name for name in (say("panel"), say("series")) if name in table and table[name].nunique(dropna=False) < 2]
    return table.drop(columns=alike)


def plain(text: Any) -> str:
    """Return a text as Plotly displays it: without tags, and with entities replaced."""
    return unescape(_TAG.sub("", _BREAK.sub(", ", str(text))))


def _columns(trace: Any, layout: Mapping, titles: Mapping[str, str], panels: Mapping[str, str]) -> Iterator[tuple]:
    x_axis, y_axis = trace["xaxis"] or "x", trace["yaxis"] or "y"
    yield say("panel"), panels.get(x_axis + y_axis, x_axis[1:] or "1")
    yield say("series"), plain(trace.name or "")
    if trace.type == "heatmap":
        z = np.asarray(trace.z)
        row, column = (place.ravel() for place in np.indices(z.shape))
        sides = {"y": (y_axis, trace.y, row), "x": (x_axis, trace.x, column)}
        for letter, (axis, values, places) in sides.items():
            along = np.arange(z.shape[0 if letter == "y" else 1]) if values is None else np.asarray(values)
            yield titles[letter], np.asarray(_label_positions(along, layout, axis))[places]
        yield say("names.value"), z.ravel()
        shape = z.shape
    else:
        length = max(len(values) for values in (trace.x, trace.y, ()) if values is not None)
        for letter, axis, values in (("x", x_axis, trace.x), ("y", y_axis, trace.y)):
            along = np.arange(length) if values is None else np.asarray(values)
            yield titles[letter], _label_positions(along, layout, axis)
        shape = (length,)
    yield from _text_columns(say("names.text"), trace.text, shape)
    yield from _text_columns(say("hover"), trace.customdata, shape, each=lambda number: say("numbered_hover", n=number))


def _text_columns(
    name: str, values: Any, shape: tuple[int, ...], *, each: Callable[[int], str] | None = None
) -> Iterator[tuple]:
    """Yield the text on marks or in their hover, if there is one text (or list) for each."""
    if values is None or isinstance(values, str):
        return
    array = np.asarray(values, dtype=object)
    series = {}
    if array.shape == shape:
        series = {name: array.ravel()}
    elif array.shape[: len(shape)] == shape and array.ndim == len(shape) + 1:
        series = {(each(k + 1) if each else f"{name} {k + 1}"): array[..., k].ravel() for k in range(array.shape[-1])}
    for column, cells in series.items():
        if any(cell is not None and cell != "" for cell in cells):
            yield column, [plain(cell) if isinstance(cell, str) else cell for cell in cells]


def _label_positions(values: np.ndarray, layout: Mapping, axis: str) -> list:
    """Return positions as the labels of their axis; a repeated label is followed by its position."""
    named = layout.get(f"{axis[0]}axis{axis[1:]}", {})
    aliases = named.get("labelalias") or {}  # labels of long axes, by position as text
    labels = [plain(text) for text in aliases.values()] or [plain(text) for text in _as_list(named.get("ticktext"))]
    places = [int(place) for place in aliases] or _as_list(named.get("tickvals"))
    known = {
        place: label if labels.count(label) == 1 else f"{label} ({place})"
        for place, label in zip(places, labels, strict=False)
    }
    return [known.get(value, plain(value) if isinstance(value, str) else value) for value in values.tolist()]


def _as_list(values: Any) -> list:
    return [] if values is None else np.asarray(values).tolist()


def _shared_title(layout: Mapping, traces: list, letter: str) -> str:
    """Return the shared title of one direction's axes, if the other direction has another one."""
    axes = {f"{letter}axis{(trace[f'{letter}axis'] or letter)[1:]}" for trace in traces}
    found = {plain(layout.get(axis, {}).get("title", {}).get("text") or "") for axis in axes} - {""}
    return f"{letter}: {found.pop()}" if len(found) == 1 else letter


def _panel_names(layout: Mapping) -> dict[str, str]:
    """Return the names above panels (``charts.toolkit.sheet``), by the panel's axes, e.g. "x2y2"."""
    places = (
        (note.get("xref", ""), note.get("yref", ""), note.get("text", "")) for note in layout.get("annotations", ())
    )
    return {
        x.removesuffix(" domain") + y.removesuffix(" domain"): plain(text)
        for x, y, text in places
        if x.endswith(" domain") and y.endswith(" domain")
    }


def _altair_table(specification: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    fields = _encoded_fields({key: value for key, value in specification.items() if key != "datasets"})
    tables = [pd.DataFrame(rows) for rows in specification.get("datasets", {}).values()]
    tables = [table[[field for field in fields if field in table]] for table in tables]
    return (pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()).rename(columns=fields)


def _encoded_fields(node: Any) -> dict[str, str]:
    """Return the title of each field that a specification encodes: the last one given, or its name."""
    found: dict[str, str] = {}
    if isinstance(node, Mapping) and isinstance(field := node.get("field"), str):
        title = node.get("title")
        found[field] = title if isinstance(title, str) and title else field
    for child in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
        for field, title in _encoded_fields(child).items():
            if title != field or field not in found:
                found[field] = title
    return found
