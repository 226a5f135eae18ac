"""A figure under construction: plain dictionaries, converted to a Plotly figure once, at the end.

Plotly's own figure copies and validates at every update; a figure of three panels takes 60 ms of processor time that
way and 10 ms this way, which matters with thirty students. The methods have Plotly's names and accept the same
underscores (``title_text="…"`` sets ``title.text``). A misspelt setting raises when ``drawn`` validates everything, as
in the tests; validating the same settings again for every student would take four fifths of the remaining time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

VALIDATE = False  # the tests set it
GAP = 56  # pixels between two panels, for the upper one's ticks and the lower one's name


class Sheet:
    """One panel, or a grid of them; the axes of panel n are ``xaxis{n}`` and ``yaxis{n}``.

    ``traces`` are dictionaries with their ``type``, for the first panel; ``n_rows`` and ``n_columns`` define the grid.
    """

    def __init__(self, *traces: Mapping[str, Any], n_rows: int = 1, n_columns: int = 1) -> None:
        self.traces: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {"annotations": [], "shapes": [], "images": []}
        self.n_rows, self.n_columns = n_rows, n_columns
        for number in range(1, n_rows * n_columns + 1):
            self.layout[f"xaxis{_suffix(number)}"] = {"anchor": f"y{_suffix(number)}"}
            self.layout[f"yaxis{_suffix(number)}"] = {"anchor": f"x{_suffix(number)}"}
        for trace in traces:
            self.add_trace(trace)

    def add_trace(self, trace: Mapping[str, Any], *, row: int = 1, col: int = 1) -> None:
        """Add a trace to a panel."""
        suffix = _suffix(self._number(row, col))
        self.traces.append({**trace, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})

    def bar(self, *, row: int = 1, col: int = 1, **settings: Any) -> None:
        """Add a trace of bars to a panel."""
        self.add_trace(bar(**settings), row=row, col=col)

    def scatter(self, *, row: int = 1, col: int = 1, **settings: Any) -> None:
        """Add a trace of points, lines or texts to a panel."""
        self.add_trace(scatter(**settings), row=row, col=col)

    def update_layout(self, **settings: Any) -> None:
        """Update settings of the layout."""
        _merge(self.layout, settings)

    def update_xaxes(self, *, row: int | None = None, col: int | None = None, **settings: Any) -> None:
        """Update the horizontal axes of a row, a column, or all panels."""
        for number in self._numbers(row, col):
            _merge(self.layout[f"xaxis{_suffix(number)}"], settings)

    def update_yaxes(self, *, row: int | None = None, col: int | None = None, **settings: Any) -> None:
        """Update the vertical axes of a row, a column, or all panels."""
        for number in self._numbers(row, col):
            _merge(self.layout[f"yaxis{_suffix(number)}"], settings)

    def update_annotations(self, **settings: Any) -> None:
        """Update all annotations."""
        for annotation in self.layout["annotations"]:
            _merge(annotation, settings)

    def add_annotation(self, **settings: Any) -> None:
        """Add an annotation."""
        self.layout["annotations"].append(_merge({"showarrow": False}, settings))

    def add_shape(self, **settings: Any) -> None:
        """Add a shape."""
        self.layout["shapes"].append(_merge({"xref": "x", "yref": "y"}, settings))

    def add_box(self, x: Sequence[float], y: Sequence[float], *, row: int = 1, col: int = 1, **settings: Any) -> None:
        """Add a rectangle to a panel, between the two ends of ``x`` and of ``y``."""
        suffix = _suffix(self._number(row, col))
        place = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1], "xref": f"x{suffix}", "yref": f"y{suffix}"}
        self.add_shape(type="rect", **place, **settings)

    def add_image(self, address: str, *, row: int = 1, col: int = 1, **settings: Any) -> None:
        """Add an image to a panel, below its traces; ``address`` is a data URL."""
        suffix = _suffix(self._number(row, col))
        place = {"xref": f"x{suffix}", "yref": f"y{suffix}", "layer": "below"}
        self.layout["images"].append({"source": address, **place, **settings})

    def add_hline(self, *, y: float, line: Mapping[str, Any], row: int = 1) -> None:
        """Add a line across the whole width of a panel."""
        suffix = _suffix(self._number(row, 1))
        ends = {"x0": 0, "x1": 1, "y0": y, "y1": y, "xref": f"x{suffix} domain", "yref": f"y{suffix}"}
        self.add_shape(type="line", line=dict(line), **ends)

    def add_vline(self, *, x: float, line: Mapping[str, Any], row: int = 1) -> None:
        """Add a line over the whole height of a panel."""
        suffix = _suffix(self._number(row, 1))
        ends = {"x0": x, "x1": x, "y0": 0, "y1": 1, "xref": f"x{suffix}", "yref": f"y{suffix} domain"}
        self.add_shape(type="line", line=dict(line), **ends)

    def drawn(self) -> go.Figure:
        """Return the finished figure.

        Raises:
            ValueError: If ``VALIDATE`` is set and Plotly does not know a setting.
        """
        layout = {name: setting for name, setting in self.layout.items() if setting != []}
        return go.Figure(data=self.traces, layout=layout, _validate=VALIDATE)

    def _number(self, row: int, col: int) -> int:
        return (row - 1) * self.n_columns + col

    def _numbers(self, row: int | None, col: int | None) -> Iterator[int]:
        for each_row in range(1, self.n_rows + 1) if row is None else (row,):
            for each_column in range(1, self.n_columns + 1) if col is None else (col,):
                yield self._number(each_row, each_column)


def bar(**settings: Any) -> dict[str, Any]:
    """Return a trace of bars; the legend lists it only if it has a name."""
    return {"type": "bar", **_hide_unnamed(settings), **settings}


def scatter(**settings: Any) -> dict[str, Any]:
    """Return a trace of points, lines or texts; the legend lists it only if it has a name."""
    return {"type": "scatter", **_hide_unnamed(settings), **settings}


def stack_panels(names: Sequence[str], *, heights: Sequence[float], gap: float = GAP) -> Sheet:
    """Return panels on top of each other with one horizontal axis, each named at its upper left.

    ``heights`` and ``gap`` (between two panels) are in pixels.
    """
    sheet, last = Sheet(n_rows=len(names)), _suffix(len(names))
    whole = sum(heights) + gap * (len(heights) - 1)
    top = whole
    for row, height in enumerate(heights, start=1):
        sheet.update_yaxes(row=row, domain=[max(0.0, (top - height) / whole), top / whole])
        top -= height + gap
        if row < len(heights):
            sheet.update_xaxes(row=row, matches=f"x{last}", showticklabels=False)
    _name_panels(sheet, names)
    return sheet


def stacked_height(heights: Sequence[float], *, around: int = 130, gap: float = GAP) -> float:
    """Return the height in pixels of stacked panels; ``around`` is the space above and below."""
    return sum(heights) + gap * (len(heights) - 1) + around


def place_side_by_side(names: Sequence[str], *, widths: Sequence[float] | None = None, spacing: float = 0.03) -> Sheet:
    """Return panels in a row with one vertical axis, each named at its upper left.

    ``widths`` are relative; ``spacing`` is the share of the total width between two panels.
    """
    sheet = Sheet(n_columns=len(names))
    widths = widths or [1.0] * len(names)
    left, share = 0.0, (1 - spacing * (len(names) - 1)) / sum(widths)
    for column, width in enumerate(widths, start=1):
        sheet.update_xaxes(col=column, domain=[left, min(1.0, left + width * share)])
        left += width * share + spacing
        if column > 1:
            sheet.update_yaxes(col=column, matches="y", showticklabels=False)
    _name_panels(sheet, names)
    return sheet


def place_in_grid(names: Sequence[str], *, across: int) -> Sheet:
    """Return panels in rows of ``across``, each named at its upper left and with axes of its own."""
    spacing, below = 0.03, 0.2  # shares of the total width between columns, and of a row's height below its panels
    down = -(-len(names) // across)
    sheet = Sheet(n_rows=down, n_columns=across)
    width, height = (1 - spacing * (across - 1)) / across, 1 / down
    for number in range(down * across):
        row, column = divmod(number, across)
        left, top = column * (width + spacing), 1 - row * height
        place = {"row": row + 1, "col": column + 1}
        sheet.update_xaxes(**place, domain=[left, min(1.0, left + width)], visible=number < len(names))
        bottom = top - height * (1 - below)
        sheet.update_yaxes(**place, domain=[bottom, top], visible=number < len(names))
    _name_panels(sheet, names)
    return sheet


def _name_panels(sheet: Sheet, names: Sequence[str]) -> None:
    for number, name in enumerate(names, start=1):
        if name:
            place = {"xref": f"x{_suffix(number)} domain", "yref": f"y{_suffix(number)} domain"}
            sheet.add_annotation(text=f"<b>{name}</b>", x=0, y=1, **place, xanchor="left", yanchor="bottom", yshift=3)


def _hide_unnamed(settings: Mapping[str, Any]) -> dict[str, bool]:
    return {} if "name" in settings else {"showlegend": False}


def _suffix(number: int) -> str:
    return "" if number == 1 else str(number)


def _merge(target: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Merge settings such as ``title_font_size=14`` or ``title={"text": "…"}`` into ``target``; return it."""
    for key, value in settings.items():
        *path, last = key.split("_")
        place = target
        for name in path:
            place = place.setdefault(name, {})
        if isinstance(value, Mapping) and isinstance(place.get(last), dict):
            place[last] = {**place[last], **value}
        else:
            place[last] = value
    return target
