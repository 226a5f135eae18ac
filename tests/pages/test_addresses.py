"""Every address parameter of every page, with invalid values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import cycle

import pytest
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest, app_test

from tests.pages.conftest import said
from tests.pages.test_links import PAGES
from ui.shell.focus import Focus
from ui.shell.share import FINGERPRINT, NOTE

WIDGETS = ("selectbox", "number_input", "slider", "select_slider", "toggle", "checkbox", "radio", "text_input")
MORE = ("text_area", "multiselect", "button_group")
OF_PAGES = {"edit", "mask", "cell", "second", "other", "force", "path", "word"}
VALUES = (
    "../../../../etc/passwd",
    "\0",
    "x" * 100_000,
    "9" * 5000,
    "-1",
    "nan",
    "1e999",
    "٣",
    "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "[x](javascript:alert(1)) ![y](http://example.org/y.png)",
    "$\\input{/etc/passwd}$ {0} %s {name!r}",
    '{"a": [1, null]}',
    "\u202eabc\u2028",
)


def parameters(app: AppTest) -> list[str]:
    """Return everything that may be read from the address: the focus, and every named widget."""
    keys = {element.key for kind in (*WIDGETS, *MORE) for element in app.get(kind) if getattr(element, "key", None)}
    return sorted({field.name for field in fields(Focus)} | {NOTE, FINGERPRINT} | OF_PAGES | keys)


@pytest.mark.parametrize("page", PAGES)
def test_every_parameter_at_once(open_app: Callable[..., AppTest], page: str) -> None:
    """All of them empty, then each with another value, twice."""
    names = parameters(open_app(page))
    for values in (("",), VALUES, VALUES[7:] + VALUES[:7]):
        address = {name: value for name, value in zip(names, cycle(values), strict=False) if name != "page"}
        app = open_app(page, **address)
        assert not app.exception, (values[0], app.exception)
        wrong = [error.value for error in app.error]
        assert all("went wrong" not in error for error in wrong), (values[0], wrong)


@pytest.mark.parametrize("page", ["tokens", "checkpoint"])
def test_the_very_first_request_of_a_server_names_a_page(
    open_app: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """Streamlit then takes ``pages/`` for the navigation and runs the file of that page alone."""
    usual = open_app(page, checkpoint="tiny-gpt", layer="1")
    monkeypatch.setattr(app_test, "PagesManager", PagesManager)
    first = open_app(page, checkpoint="tiny-gpt", layer="1")
    assert "restarted" in first.session_state
    # Streamlit requests a second run with the navigation, then one as a page without app.py
    for app in (first, first.run()):
        assert not app.exception and not app.error
        assert said(app) == said(usual) and app.title[0].value == usual.title[0].value
        assert [box.key for box in app.text_input] == [box.key for box in usual.text_input] != []
    first.query_params["sentence"] = "The dog sleeps."
    assert first.run().session_state["focus"].sentence == "The dog sleeps."
