"""Every figure as a table: the numbers that it draws, with the names of its axes."""

from __future__ import annotations

import altair
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa

from charts.figures.training_curves import DEV, TRAIN, loss_curves
from charts.toolkit.figure_table import figure_table, plain


def test_every_figure_of_the_package_has_a_table(figures):
    for name, figure in figures.items():
        table = figure_table(figure)
        assert len(table) and not table.isna().all().any(), name
        pa.Table.from_pandas(table)  # as in Streamlit, where no column may mix texts and numbers
        known = {number for column in table for number in pd.to_numeric(table[column], errors="coerce")}
        for trace in figure.data:
            if trace.hoverinfo == "skip":
                continue
            for letter, values in drawn_numbers(trace, figure.layout):
                if values.dtype.kind not in "fiu":
                    continue
                lost = {value for value in values[np.isfinite(values)].tolist() if value not in known}
                assert not lost, f"{name}: {letter} of {trace.name} lost {lost}"


def drawn_numbers(trace, layout):
    """Return the numbers of a trace that are not positions of labels."""
    for letter in "xy":
        axis = layout[f"{letter}axis{(trace[f'{letter}axis'] or letter)[1:]}"]
        if trace[letter] is not None and axis.ticktext is None:
            yield letter, np.asarray(trace[letter])
    if trace.type == "heatmap":
        yield "z", np.asarray(trace.z, dtype=float).ravel()


def test_a_heatmap_has_a_row_for_each_cell_and_its_labels(figures):
    table = figure_table(figures["sublayer_contribution"])
    cells = figures["sublayer_contribution"].data[0].z
    first = table[table["panel"] == table["panel"][0]]
    assert len(first) == np.size(cells)
    assert np.array_equal(first["value"].to_numpy(np.float32), np.asarray(cells, np.float32).ravel())
    assert "·the (1)" in set(first["x: token"])  # a repeated word stays two columns


def test_what_is_shown_as_text_is_text_in_the_table(figures):
    table = figure_table(figures["candidate_bars"])
    assert "·<b>" in set(table["y: candidate"])
    assert plain("<b>·&lt;s&gt;</b><br>p &#36;1") == "·<s>, p $1"


def test_panels_and_series_are_columns_only_where_there_are_several():
    one = go.Figure(go.Bar(x=["a", "b"], y=[1.0, 2.0], name="only"))
    assert list(figure_table(one)) == ["x", "y"]
    two = go.Figure([go.Bar(x=["a"], y=[1.0], name="first"), go.Bar(x=["a"], y=[2.0], name="second")])
    assert figure_table(two).to_dict("list") == {"series": ["first", "second"], "x": ["a", "a"], "y": [1.0, 2.0]}


def test_a_figure_without_data_has_an_empty_table():
    assert figure_table(go.Figure()).empty
    assert figure_table(altair.Chart(pd.DataFrame({"a": []})).mark_bar().encode(x="a:Q")).empty


def test_an_altair_chart_gives_the_fields_that_it_encodes():
    history = pd.DataFrame({"step": [1, 2], "train_loss": [3.0, 2.5], "dev_loss": [np.nan, 2.25], "seconds": [9, 9]})
    table = figure_table(loss_curves(history))
    assert list(table) == ["curve", "training step", "loss (nats per token)"]
    assert table[table["curve"] == TRAIN]["loss (nats per token)"].tolist() == [3.0, 2.5]
    assert table[table["curve"] == DEV]["loss (nats per token)"].tolist() == [2.25]
