"""The words of figures and tables in the language of the session, put in where they are shown.

``charts/`` writes English, for notebooks as well. ``ui/words/<language>/charts.toml`` says what each of its texts is
called: whole lines, with ``{…}`` where a number, a token or a name stands. What is not in the file stays as it is. A
token that a person typed is never translated: it has no blank inside (·), so a text without one is only looked up
where all its neighbours are words of the file, too.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ui.words.phrases import AROUND, LINE_END, WORD, Say, speaker

FILE = "charts"
_LETTER = re.compile(r"[^\W\d_](?![-+]?\d)")  # but not the e of 1e-05
_TEXTS = ("name", "hovertemplate", "texttemplate")  # of a trace
_LISTS = ("text", "hovertext", "customdata")


def for_session(figure: Any, *, kind: str) -> Any:
    """The figure (``kind``: "plotly" or "altair") in the language of this session; a copy where anything changes."""
    say = speaker(FILE)
    if say is None:
        return figure
    return _plotly(figure, say) if kind == "plotly" else _altair(figure, say)


def table_for_session(table: pd.DataFrame, options: Mapping[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table and what ``st.dataframe`` is told about it, with the headings of this session's language."""
    say = speaker(FILE)
    if say is None:
        return table, dict(options)
    names = {column: said for column in table.columns if isinstance(column, str) and (said := say(column))}
    configured = {names.get(column, column): how for column, how in options.get("column_config", {}).items()}
    return table.rename(columns=names), {**options, **({"column_config": configured} if configured else {})}


def _plotly(figure: Any, say: Say) -> Any:
    import plotly.graph_objects as go

    # Part by part: the figure's own to_plotly_json would turn the arrays into base64 text.
    layout = _in_layout(figure.layout.to_plotly_json(), say)
    return go.Figure(data=[_in_trace(trace.to_plotly_json(), say) for trace in figure.data], layout=layout)


def _in_layout(node: Any, say: Say) -> Any:
    """Titles, annotations and the words on axes, wherever they are."""
    if isinstance(node, dict):
        return {
            key: _in_list(value, say)
            if key == "ticktext"
            else (say(value) or value)
            if key == "text" and isinstance(value, str)
            else value
            if key == "template"
            else _in_layout(value, say)
            for key, value in node.items()
        }
    return [_in_layout(one, say) for one in node] if isinstance(node, list | tuple) else node


def _in_trace(trace: dict[str, Any], say: Say) -> dict[str, Any]:
    changed = dict(trace)
    for name in _TEXTS:
        if isinstance(value := trace.get(name), str):
            changed[name] = say(value) or value
    for name in _LISTS:
        if name in trace:
            changed[name] = _in_list(trace[name], say)
    for name in ("colorbar", "marker"):
        if name in trace:
            changed[name] = _in_layout(trace[name], say)
    return changed


def _in_list(values: Any, say: Say) -> Any:
    """Texts of many marks, tokens perhaps among them; of several columns each by itself. No numbers are touched."""
    if isinstance(values, str):
        return say(values) or values
    rows = values if isinstance(values, list | tuple) else getattr(values, "tolist", list)()
    if not any(_holds_text(row) for row in rows):
        return values
    if all(isinstance(row, list | tuple) for row in rows) and len({len(row) for row in rows}) == 1:
        columns = [_in_list(list(column), say) for column in zip(*rows, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]
    all_known = all(say(row) is not None for row in rows if isinstance(row, str) and _LETTER.search(row))
    return [(say(row) or row) if isinstance(row, str) and (all_known or " " in row.strip()) else row for row in rows]


def _holds_text(row: Any) -> bool:
    return isinstance(row, str) or (isinstance(row, list | tuple) and any(isinstance(one, str) for one in row))


def _altair(figure: Any, say: Say) -> Any:
    return type(figure).from_dict(_in_specification(figure.to_dict(), say), validate=False)


def _in_specification(node: Any, say: Say, key: str = "") -> Any:
    """Titles of axes, legends and tooltips, and the names of curves: in the data, in the scale and in filters."""
    if isinstance(node, dict):
        changed = {name: _in_specification(value, say, name) for name, value in node.items()}
        if "field" in node and "title" not in node and key == "tooltip" and (said := say(str(node["field"]))):
            changed["title"] = said
        return changed
    if isinstance(node, list):
        return [_in_specification(one, say, key) for one in node]
    if isinstance(node, str) and key in ("title", "domain", "curve"):
        return say(node) or node
    return node


def lines_of(figure: Any, *, kind: str) -> Sequence[str]:
    """Every line of a figure that would be looked up: what a translation has to know."""
    asked: list[str] = []

    def note(words: str) -> None:
        asked.extend(AROUND.fullmatch(part)[2] for part in LINE_END.split(words) if WORD.search(part))

    _plotly(figure, note) if kind == "plotly" else _in_specification(figure.to_dict(), note)
    return tuple(dict.fromkeys(asked))
