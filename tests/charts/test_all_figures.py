"""Requirements on every figure: named axes, escaped text, small data, a table, both languages."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import altair
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

import charts
from charts.figures.heat_maps import heat_map
from charts.figures.stream_distance import stream_distance
from charts.figures.training_curves import DEV, TRAIN, loss_curves
from charts.toolkit import parts, style, words
from charts.toolkit.axes import Axis
from charts.toolkit.figure_table import figure_table
from tests.conftest import ROOT
from tests.figures import every_figure, sequence
from transformer.text.tokens import TokenSequence
from ui.words.translations import read_texts

# Limits for a figure of seven tokens and 16 dimensions; a template or a copied array would exceed them.
_BYTES = 40_000
_NAMED_ROW_BY_ROW = {
    "patch_contributions",
    "units_and_words",
    "vector_strips",
    "weight_rows",
}  # every row or column has a name, or is of an image; such axes have none


def test_every_figure_is_drawn_here(figures):
    public = set()
    for file in [*ROOT.glob("charts/figures/*.py"), *ROOT.glob("views/*/*_figure*.py")]:
        loaded = importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            returns = inspect.signature(function).return_annotation
            made_here = function.__module__ == loaded.__name__ and not name.startswith("_")
            if made_here and returns in ("go.Figure", go.Figure):
                public.add(name)
                kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
                assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind in kinds[1:]), f"{name} takes positions"
    assert public == set(figures)


def test_every_axis_is_named(figures):
    for name, figure in figures.items():
        for letter in "xy" if name not in _NAMED_ROW_BY_ROW else "":
            axes = [figure.layout[key] for key in figure.layout if key.startswith(f"{letter}axis")]
            titles = [axis.title.text for axis in axes if axis.visible is not False]
            assert any(titles), f"{name} has no {letter} axis with a title"


def test_no_token_text_reaches_plotly_unescaped(figures):
    """Plotly reads <b> as bold, $y$ as TeX and %{z} as a placeholder."""
    # Text of the charts themselves: bold values and panel names, line breaks, hover extras, placeholders.
    for name, figure in figures.items():
        content = figure.to_plotly_json()
        content["layout"].pop("template")
        for text in _texts(content):
            for raw in ("<b>x", "·<b>", "<b>good", "·<i>", "<s>", "$y$", "·%{z}", "·&amp;", "layer <0>"):
                if raw == "·&amp;":  # the token's own five characters, whose & must be escaped once more
                    assert not text.startswith("·&amp;") or text.startswith("·&amp;amp;"), f"{name}: {text!r}"
                else:
                    assert raw not in text, f"{name}: {text!r}"


def _texts(node):
    if isinstance(node, dict):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, str):
        yield node
    elif isinstance(node, (list, tuple, np.ndarray)) and getattr(node, "dtype", None) != np.float32:
        for value in node:
            yield from _texts(value)


def test_figures_are_light_and_styled(figures):
    for name, figure in figures.items():
        assert 110 <= figure.layout.height <= 1000, f"{name} is {figure.layout.height} pixels high"
        assert figure.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)", name
        content = figure.to_plotly_json()
        content["layout"].pop("template")
        from plotly.utils import PlotlyJSONEncoder

        text = json.dumps(content, cls=PlotlyJSONEncoder)
        assert len(text) < _BYTES, f"{name} has {len(text)} bytes"


def test_matrices_are_sent_as_float32(figures):
    for name, figure in figures.items():
        for trace in figure.data:
            if trace.type == "heatmap":
                assert isinstance(trace.z, np.ndarray), name
                assert trace.z.dtype == np.float32, name


def test_importing_charts_loads_neither_torch_nor_streamlit():
    modules = [f"charts.{module.name}" for module in pkgutil.iter_modules(charts.__path__)]
    code = (
        f"import sys, importlib\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print([name for name in ('torch', 'streamlit', 'pandas', 'plotly.express', 'altair') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


# ---- as a table ------------------------------------------------------------------------------------------------------


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
    table = figure_table(figures["heat_maps"])
    cells = figures["heat_maps"].data[0].z
    first = table[table["panel"] == table["panel"][0]]
    assert len(first) == np.size(cells)
    assert np.array_equal(first["value"].to_numpy(np.float32), np.asarray(cells, np.float32).ravel())
    assert "·the (1)" in set(first["x: token"])  # a repeated word stays two columns


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


# ---- of 256 tokens ---------------------------------------------------------------------------------------------------

N = 256


def sentence(count: int = N) -> TokenSequence:
    """Return repeated words, one of them markup."""
    return sequence([("<b>", "·the", "·sea")[place % 3] for place in range(count)])


@pytest.mark.parametrize("axis", [style.label_axis, style.label_rows])
def test_an_axis_writes_as_many_labels_as_fit_and_knows_all(axis) -> None:
    found = axis(sentence().displays, title="token")
    assert found["type"] == "category" and found["nticks"] == style.MAX_LABELS and "ticktext" not in found
    assert found["categoryarray"] == [str(k) for k in range(N)]
    assert [found["labelalias"][str(k)] for k in range(4)] == ["&lt;b&gt;", "·the", "·sea", "&lt;b&gt;"]
    assert sorted(found["range"]) == [-0.5, N - 0.5]
    few = axis(sentence(style.MAX_LABELS).displays, title="token")
    assert len(few["ticktext"]) == style.MAX_LABELS and "type" not in few


def test_the_table_of_a_long_figure_has_every_token() -> None:
    rows = Axis("token", sentence().displays)
    figure = heat_map(np.zeros((N, 3)), rows=rows, columns=Axis("unit"), hover="", value="value")
    column = figure_table(figure)["y: token"]
    assert len(column) == 3 * N and column.iloc[0].startswith("<b> (0)") and column.iloc[-1] == "<b> (255)"


def test_a_figure_does_not_grow_for_ever() -> None:
    assert style.rows_height(N) == style.rows_height(style.MAX_ROWS) == style.rows_height(10_000)
    assert style.rows_height(10) < style.rows_height(40) < style.rows_height(60)


def test_narrow_cells_have_no_gaps_and_many_bars_no_numbers() -> None:
    assert "ygap" not in parts.heatmap(np.zeros((N, 4)), hover="", bar=None, ygap=1, xgap=1)
    assert parts.heatmap(np.zeros((N, 4)), hover="", bar=None, ygap=1, xgap=1)["xgap"] == 1
    assert parts.bar_rows(np.arange(N), hover="")["text"] is None
    assert len(parts.bar_rows(np.arange(9), hover="")["text"]) == 9


# ---- in the language of the session ----------------------------------------------------------------------------------

HISTORY = pd.DataFrame({"step": [0, 1], "train_loss": [2.0, 1.0], "dev_loss": [2.5, 1.5], "learning_rate": 0.1})


@pytest.fixture
def in_french(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_read", lambda: read_texts(ROOT, "figures", "fr"))


@pytest.fixture(scope="module")
def french(tokens, target, causal_view, candidates) -> dict:
    """Return every figure, drawn in French."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "_read", lambda: read_texts(ROOT, "figures", "fr"))
        return {**every_figure(tokens, target, causal_view, candidates), "loss_curves": loss_curves(HISTORY)}


def test_numbers_are_never_touched(figures: dict, french: dict) -> None:
    for name in figures:
        for one, other in zip(figures[name].data, french[name].data, strict=True):
            for axis in ("x", "y", "z"):
                if getattr(one, axis, None) is not None:
                    np.testing.assert_array_equal(getattr(one, axis), getattr(other, axis), err_msg=name)


def test_a_token_that_is_also_a_word_of_a_figure_stays(in_french: None) -> None:
    typed = ("<s>", "before", "layer", "layer 0", "kept")
    axis = stream_distance(np.ones((1, 5)), steps=["embedding"], labels=typed, equal=[True] * 5).layout.xaxis
    assert axis.title.text.startswith("jeton") and list(axis.ticktext)[1:] == list(typed[1:])


def test_a_table_in_french(monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> None:
        import pandas as pd
        import streamlit as st

        from ui.show.figures import show_table

        table = pd.DataFrame({"text": ["step"], "Σ log p": [1.5], "Schritt": [1]})
        show_table(table, name="some", column_config={"text": st.column_config.TextColumn(help="how")})

    def shown() -> tuple[pd.DataFrame, str]:
        app = AppTest.from_function(script).run()
        assert not app.exception
        return app.dataframe[0].value, app.dataframe[0].proto.columns

    assert list(shown()[0]) == ["text", "Σ log p", "Schritt"]
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")
    table, configured = shown()
    assert list(table) == ["texte", "Σ log p", "Schritt"] and table.iloc[0, 0] == "step"
    assert "texte" in json.loads(configured) and "text" not in json.loads(configured)


def test_two_sessions_at_once_get_a_figure_each_in_its_own_language(monkeypatch: pytest.MonkeyPatch) -> None:
    session = threading.local()
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: getattr(session, "language", "en"))
    said = {"en": "residual stream after", "fr": "flux résiduel après"}

    def title() -> str:
        return stream_distance([[1.0]], steps=["embedding"], labels=["a"], equal=[True]).layout.yaxis.title.text

    def titles(language: str) -> set[str]:
        session.language = language
        return {title() for _ in range(30)}

    with ThreadPoolExecutor(2) as threads:
        found = dict(zip(said, threads.map(titles, said), strict=True))
    assert found == {language: {title} for language, title in said.items()}
    assert title() == said["en"], "a notebook"
