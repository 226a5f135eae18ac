"""The presenter switch hides small controls, and is part of the address."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from tests.pages.conftest import codes, is_fine, said
from ui.words.texts import page_text

Open = Callable[..., AppTest]
LOOK_FOR = page_text("embeddings").look_for[0]


def test_it_leaves_out_code_and_examples(open_app: Open) -> None:
    plain, large = (open_app("embeddings", presenter=value) for value in ("0", "1"))
    is_fine(large)
    assert LOOK_FOR in said(plain) and LOOK_FOR not in said(large)
    assert codes(plain) and not codes(large)
    examples = [[menu.key for menu in app.sidebar.menu_button] for app in (plain, large)]
    assert examples == [["sidebar example"], []]


def test_the_switch_is_in_the_address_and_keeps_the_sentence(open_app: Open) -> None:
    app = open_app("tokens", sentence="Hello there.")
    app.toggle(key="sidebar presenter").set_value(True).run()
    is_fine(app)
    assert app.query_params["presenter"] in ("1", ["1"])
    app.toggle(key="sidebar presenter").set_value(False).run()
    assert "presenter" not in app.query_params
    assert app.query_params["sentence"] in ("Hello there.", ["Hello there."])
