"""The presenter switch enlarges figures, hides small controls, and is part of the address."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import codes, is_fine, said
from ui.shell.presentation import presenter_keys
from ui.shell.presentation.presenter import _FACTOR, _ROOM, _SCALE
from ui.words.texts import page_text

Open = Callable[..., AppTest]
LOOK_FOR = page_text("embeddings").look_for[0]


def height(app: AppTest) -> float:
    return json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["height"]


def font(app: AppTest) -> float:
    return json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["xaxis"]["tickfont"]["size"]


def test_it_enlarges_figures_and_leaves_out_code_and_examples(open_app: Open) -> None:
    plain, large = (open_app("embeddings", presenter=value) for value in ("0", "1"))
    is_fine(large)
    assert height(large) == min(height(plain) * _FACTOR, max(height(plain), _ROOM))
    assert font(large) == font(plain) * _FACTOR
    assert LOOK_FOR in said(plain) and LOOK_FOR not in said(large)
    assert codes(plain) and not codes(large)
    examples = [[menu.key for menu in app.sidebar.menu_button] for app in (plain, large)]
    assert examples == [["sidebar example"], []]


def test_figures_grow_with_the_screen(open_app: Open) -> None:
    app = open_app("embeddings", presenter="1")
    plain = height(app), font(app)
    app.session_state[_SCALE] = 1.5
    is_fine(app.run())
    assert (height(app), font(app)) == pytest.approx((plain[0] * 1.5, plain[1] * 1.5))


@pytest.mark.parametrize(("sent", "kept"), [(1.5, 1.5), (9, 2.0), (-1, 1.0), ("x", 1.0), (None, 1.0)])
def test_the_scale_of_the_screen_is_limited(sent: object, kept: float, monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict = {presenter_keys._KEY: SimpleNamespace(scale=sent)}
    monkeypatch.setattr(st, "session_state", state)
    presenter_keys._apply_scale()
    assert state[_SCALE] == kept


def test_the_switch_is_in_the_address_and_keeps_the_sentence(open_app: Open) -> None:
    app = open_app("tokens", sentence="Hello there.")
    app.toggle(key="sidebar presenter").set_value(True).run()
    is_fine(app)
    assert app.query_params["presenter"] in ("1", ["1"])
    app.toggle(key="sidebar presenter").set_value(False).run()
    assert "presenter" not in app.query_params
    assert app.query_params["sentence"] in ("Hello there.", ["Hello there."])
