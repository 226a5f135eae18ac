"""A figure as a plain dictionary equals Plotly's own figure and rejects settings unknown to Plotly."""

from __future__ import annotations

import json

import numpy as np
import pytest
from plotly.subplots import make_subplots

from charts.toolkit import sheet, style
from charts.toolkit.sheet import Sheet, bar, place_side_by_side, scatter, stack_panels, stacked_height


def test_stacked_panels_lie_where_plotly_would_put_them():
    ours = stack_panels(["a", "b", "c"], heights=[100, 50, 150], gap=30).drawn()
    theirs = make_subplots(rows=3, shared_xaxes=True, row_heights=[100, 50, 150], vertical_spacing=30 / 360)
    for axis in ("yaxis", "yaxis2", "yaxis3"):
        assert ours.layout[axis].domain == pytest.approx(theirs.layout[axis].domain)
    assert [ours.layout[axis].matches for axis in ("xaxis", "xaxis2", "xaxis3")] == ["x3", "x3", None]
    assert [note.text for note in ours.layout.annotations] == ["<b>a</b>", "<b>b</b>", "<b>c</b>"]
    assert stacked_height([100, 50, 150], gap=30, around=40) == 400


def test_panels_side_by_side_lie_where_plotly_would_put_them():
    ours = place_side_by_side(["a", "", "c"], widths=[1, 2, 1], spacing=0.05).drawn()
    theirs = make_subplots(cols=3, shared_yaxes=True, column_widths=[1, 2, 1], horizontal_spacing=0.05)
    for axis in ("xaxis", "xaxis2", "xaxis3"):
        assert ours.layout[axis].domain == pytest.approx(theirs.layout[axis].domain)
    assert [ours.layout[axis].matches for axis in ("yaxis", "yaxis2", "yaxis3")] == [None, "y", "y"]
    assert len(ours.layout.annotations) == 2, "a panel without a name has no annotation"


def test_traces_and_settings_go_to_their_panel():
    sheet = Sheet(bar(x=[1], y=[2]), n_rows=2)
    sheet.add_trace(scatter(x=[1], y=[2]), row=2)
    sheet.update_yaxes(title_text="both", title_font_size=9)
    sheet.update_yaxes(title_text="lower", row=2)
    sheet.add_hline(y=3, line={"width": 1}, row=2)
    figure = sheet.drawn()
    assert [(trace.xaxis, trace.yaxis) for trace in figure.data] == [("x", "y"), ("x2", "y2")]
    assert (figure.layout.yaxis.title.text, figure.layout.yaxis2.title.text) == ("both", "lower")
    assert figure.layout.yaxis2.title.font.size == 9, "a later setting keeps its neighbours"
    assert (figure.layout.shapes[0].xref, figure.layout.shapes[0].yref) == ("x2 domain", "y2")


def test_a_misspelt_setting_is_refused():
    with pytest.raises(ValueError, match="colour"):
        Sheet(bar(x=[1], y=[2], marker={"colour": "red"})).drawn()


def test_a_figure_that_is_not_checked_is_the_same(monkeypatch):
    def drawn():
        figure = stack_panels(["a", ""], heights=[100, 50])
        figure.add_trace(bar(x=np.arange(3), y=np.float32([1, 2, 3]), marker={"color": "red"}))
        figure.add_trace(scatter(x=[1], y=[2], hovertemplate="%{y}"), row=2)
        figure.update_yaxes(title_text="both", tickvals=(0, 1), range=(0, 3))
        style.finish(figure, height=300)
        return json.loads(figure.drawn().to_json())

    checked = drawn()
    monkeypatch.setattr(sheet, "VALIDATE", False)
    assert drawn() == checked
    Sheet(bar(x=[1], y=[2], marker={"colour": "red"})).drawn()  # nothing validates the figure here
