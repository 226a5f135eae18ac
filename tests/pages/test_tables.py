"""A table for every figure: on every page, each figure's numbers can be read row by row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine

PAGES = sorted(path.stem for path in (Path(__file__).parents[2] / "pages").glob("*.py"))
SENTENCE = "the cat sat on the <b> $x$ </s>."


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_figure_becomes_a_table(open_app: Callable[..., AppTest], page: str) -> None:
    app = open_app(page, checkpoint="tiny-translator", sentence=SENTENCE)
    switches = [toggle for toggle in app.toggle if (toggle.key or "").startswith("as table ")]
    figures = len(app.get("plotly_chart")) + len(app.get("vega_lite_chart"))
    assert len(switches) == figures
    tables = len(app.dataframe)
    for switch in switches:
        switch.set_value(True)
    app.run()
    is_fine(app)
    assert len(app.dataframe) == tables + figures
    assert all(len(table.value) for table in app.dataframe)
