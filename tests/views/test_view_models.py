"""Every page's view model can be built without the app, and its documented example runs."""

from __future__ import annotations

import doctest
import importlib
import sys

import pytest

from tests.test_borders import ROOT, module_name, modules_after

VIEW_MODELS = sorted(module_name(path) for path in (ROOT / "views").glob("*/*_view_model.py"))


def test_view_models_load_nothing_of_the_app() -> None:
    assert VIEW_MODELS
    loaded = modules_after("\n".join(f"import {name}" for name in VIEW_MODELS))
    assert not loaded & {"streamlit", "plotly", "altair", "pandas", "ui", "charts"}


@pytest.mark.parametrize("name", VIEW_MODELS)
def test_the_example_of_a_view_model_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    module = importlib.import_module(name)
    result = doctest.testmod(sys.modules[module.__name__])
    assert result.attempted and not result.failed
