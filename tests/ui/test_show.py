"""Exports are complete and work offline, and the shown code is the code that ran."""

from __future__ import annotations

import inspect
import re
import time
from concurrent.futures import ThreadPoolExecutor

import altair
import pandas as pd
import plotly.graph_objects as go
import pytest

import transformer.attention
from charts.toolkit import altair_numbers, numbers
from transformer.layer_norm import LayerNorm
from ui.show import figures
from ui.show.exports import figure_kind, self_contained_html
from ui.show.figures import digits_of, source_of

# Everything that a browser would fetch: scripts, styles, images and imports with an address of another host.
_FETCHED = re.compile(rb"""<(?:script|img|link|iframe)[^>]+(?:src|href)\s*=\s*["'](?:https?:)?//""", re.IGNORECASE)


def test_the_kind_of_a_figure() -> None:
    assert figure_kind(go.Figure()) == "plotly"
    assert figure_kind(altair.Chart(pd.DataFrame({"a": [1]})).mark_bar()) == "altair"
    with pytest.raises(TypeError, match="not pandas"):
        figure_kind(pd.DataFrame())


def test_an_exported_page_holds_its_figure_and_its_library_and_asks_no_host() -> None:
    html = self_contained_html(go.Figure(go.Bar(x=["·cat"], y=[0.125], name="only here")))
    assert b"only here" in html
    assert b"0.125" in html
    assert len(html) > 1_000_000  # plotly.js itself is inside
    assert not _FETCHED.search(html)


@pytest.mark.slow
def test_an_exported_altair_page_is_self_contained() -> None:
    pytest.importorskip("vl_convert")
    chart = altair.Chart(pd.DataFrame({"word": ["only here"], "value": [1.5]})).mark_bar().encode(x="word", y="value")
    html = self_contained_html(chart)
    assert b"only here" in html
    assert not _FETCHED.search(html)


@pytest.mark.parametrize("thing", [transformer.attention.scaled_dot_product_attention, LayerNorm, LayerNorm.forward])
def test_source_is_what_runs_with_file_and_line(thing: object) -> None:
    source = source_of(thing)
    module = inspect.getmodule(thing)
    assert source.file == f"transformer/{module.__name__.rsplit('.', 1)[-1]}.py"
    assert source.code.startswith(("def ", "class "))
    first_line = inspect.getsource(module).splitlines()[source.line - 1]
    assert first_line.strip() == source.code.splitlines()[0]
    compile(source.code, source.file, "exec")


def test_the_source_is_looked_for_once_and_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 may raise SystemError if two threads parse at once, as when reading a class's source."""
    running, seen = [], []

    def slowly(thing: object) -> tuple[list[str], int]:
        running.append(thing)
        time.sleep(0.002)
        seen.append(len(running))
        running.remove(thing)
        return found(thing)

    found = inspect.getsourcelines
    monkeypatch.setattr(figures.inspect, "getsourcelines", slowly)
    figures._source_of.cache_clear()
    things = [LayerNorm, transformer.attention.MultiHeadAttention, transformer.attention.attention_weights]
    with ThreadPoolExecutor(8) as pool:
        sources = list(pool.map(source_of, things * 8))
    assert seen == [1] * len(things)
    assert sources[:3] * 8 == sources


@pytest.mark.parametrize(
    ("column", "digits"),
    [
        ([2.1, 2.15, 1.94], "%.2f"),
        ([0.41, 0.225, 0.0], "%.3f"),
        ([123.4, 12.0], "%.0f"),
        ([0.9, 0.00001], "%.3g"),  # the small one would be 0
        ([float("nan"), float("inf")], "%.3g"),
    ],
)
def test_the_numbers_of_a_column_have_the_same_decimals(column: list[float], digits: str) -> None:
    assert digits_of(pd.Series(column)) == digits


def test_numbers_that_are_worked_out_from_one_another_keep_digits_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [-0.000109314, 0.0512345, 0.0]
    table = pd.DataFrame({"row of E": rows, "× 16": [16 * value for value in rows]})
    shown = []
    monkeypatch.setattr(figures.st, "dataframe", lambda table, **options: shown.append((table, options)))
    figures.show_table(table, name="factors", arithmetic=True)
    forms = [column["type_config"]["format"] for column in shown[0][1]["column_config"].values()]
    first, second = (float(form % value) for form, value in zip(forms, table.iloc[0], strict=True))
    assert 16 * first == pytest.approx(second, rel=1e-5)
    monkeypatch.setattr(numbers, "_language", lambda: "fr")
    figures.show_table(table, name="factors", arithmetic=True)
    assert "−0,000109314" in shown[1][0].to_html() and "−0,00174902" in shown[1][0].to_html()


def test_tables_and_altair_have_the_signs_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"share": [0.5, 0.25], "count": [6000, 1], "word": ["a,b", "1.5"]})
    chart = altair.Chart(table).mark_bar().encode(x="share:Q")
    assert altair_numbers.localize_numbers(chart) is chart, "English needs nothing"
    monkeypatch.setattr(numbers, "_language", lambda: "fr")
    written = figures._in_signs_of_reader(table, {"share": digits_of(table["share"])}).to_html()
    assert ">0,500<" in written and ">6\u202f000<" in written and ">a,b<" in written and ">1.5<" in written
    assert altair_numbers.localize_numbers(chart).to_dict()["config"]["locale"]["number"]["decimal"] == ","
