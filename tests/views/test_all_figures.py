"""Requirements on every figure: named axes, escaped user text, small data, and checked dependencies."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys

import numpy as np
import plotly.graph_objects as go

import charts
from tests.conftest import ROOT

# Limits for a figure of seven tokens and 16 dimensions; a template or a copied array would exceed them.
_BYTES = 40_000
_NAMED_ROW_BY_ROW = {
    "attention_change",
    "parameter_shares",
    "patch_contributions",
    "probabilities_changed",
    "unit_firing",
    "unit_promotes",
    "units_and_words",
    "vector_strips",
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


def test_hovers_carry_nine_digits(figures):
    for name, figure in figures.items():
        for trace in figure.data:
            if trace.type in ("heatmap", "bar") and trace.hovertemplate and "%{z" in trace.hovertemplate:
                assert "%{z:.9~g}" in trace.hovertemplate, name


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
