"""The address is written by one module, once per run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT
from tests.pages.conftest import is_fine
from ui.shell import focus as shared_focus


def test_one_module_alone_reads_and_writes_the_address() -> None:
    """A replacement for Streamlit's ``st.query_params``, and a page opened with parameters."""
    found = set()
    for folder in ("ui", "views", "pages"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if "query_params" in (getattr(node, "attr", ""), getattr(node, "id", ""), getattr(node, "arg", "")):
                    found.add(path.relative_to(ROOT).as_posix())
    assert found == {"ui/shell/address.py"}


def test_the_focus_is_copied_once_a_run(open_app: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app("attention", checkpoint="tiny-translator", sentence="The cat sat on the mat.")
    written: list[object] = []
    store = shared_focus.store
    monkeypatch.setattr(
        shared_focus, "store", lambda focus, **corrections: written.append(focus) or store(focus, **corrections)
    )
    is_fine(app.run())
    assert len(written) == 1
    app.session_state["focus"] = shared_focus.replace(app.session_state["focus"], token=999)
    written.clear()
    is_fine(app.run())
    assert len(written) == 2 and written[-1].token < 999, "what the page corrects is written, too"
    assert app.query_params.get("token") == str(written[-1].token)


def test_what_a_run_changes_in_the_address_is_one_message(
    open_app: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app("surgery", checkpoint="tiny-translator", sentence="The cat sat on the mat.", layer="1", head="1")
    is_fine(app.run())
    sent: list[str] = []
    original = QueryParams._send_query_param_msg

    def counted(parameters: QueryParams) -> None:
        original(parameters)
        sent.append(urlencode(parameters._query_params, doseq=True))

    monkeypatch.setattr(QueryParams, "_send_query_param_msg", counted)
    is_fine(app.run())
    assert not sent, "nothing has changed"
    focus = shared_focus.replace(app.session_state["focus"], layer=0, head=999, sentence="The dog sleeps.")
    app.session_state["focus"] = focus
    is_fine(app.run())
    assert len(sent) == 1, "two values go, two change, and one of them is corrected by the page"
    assert "layer" not in app.query_params and app.query_params["sentence"] == "The dog sleeps."
