"""Every page with every included checkpoint draws something, or explains in one line why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT
from tests.pages.conftest import is_fine, said
from tests.shipped import SHIPPED
from ui.shell.navigation import GROUPS
from ui.words.texts import page_text

PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.exists]

AROUND = {"glassformer_canvas_script", "glassformer_frame"}  # components that every page has; they draw nothing


# Every run opens en-fr on all pages in Chromium (tests/browser/test_first_screen.py), gpt-en on half of them
# (test_long_inputs.py), and text-to-text models on all (test_text_to_text.py). en-fr-sharp is of the same
# kind and shape as en-fr.
SHIPPED_BY_NAME = {path.name: path for path in SHIPPED}
BY_DAY = [path.name for path in SHIPPED if path.name not in ("en-fr", "en-fr-sharp", "gpt-en", "t5-small-tasks")]


def opened() -> list[ParameterSet]:
    """Return half of the pages with each checkpoint of ``BY_DAY``, in turn; all of all at night."""
    return [
        *(pytest.param(SHIPPED_BY_NAME[name], PAGES[k % 2 :: 2], id=name) for k, name in enumerate(BY_DAY)),
        *(pytest.param(path, PAGES, id=f"{path.name}, all", marks=pytest.mark.nightly) for path in SHIPPED),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "pages"), opened())
def test_every_page_opens(path: Path, pages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(path.parent))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    app.query_params["checkpoint"] = path.name
    app.query_params["sentence"], app.query_params["layer"] = "The old man read a good book.", "0"
    app.run()
    for page in pages:
        app.switch_page(f"pages/{page}.py").run()
        assert app.session_state["focus"].checkpoint == path.name
        is_fine(app)
        pictures = [drawn for kind in ("plotly_chart", "vega_lite_chart", "metric", "info") for drawn in app.get(kind)]
        canvases = {component.proto.component_name for component in app.get("bidi_component")} - AROUND
        starts = [button for button in app.button if (button.key or "").startswith("start ")]
        assert app.title and (pictures or canvases or starts), f"{page} draws nothing"
        marked = {box.key: box.value for box in app.selectbox}
        assert all(marked.get(f"choose {what}", 0) == 0 for what in ("layer", "head")), f"{page} marks {marked}"


@pytest.mark.parametrize("path", [path for path in SHIPPED if path.name != "vit-digits"], ids=lambda path: path.name)
def test_compare_opens_on_something_that_differs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(path.parent))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).switch_page("pages/compare.py")
    app.query_params["checkpoint"] = path.name
    is_fine(app.run())
    assert page_text("compare")["same_sentence"] not in said(app)
    assert "looks most at" in said(app), "in words, where the head that is shown attends in each"
