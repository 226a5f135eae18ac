"""A shared link contains the whole view, restores it, and says if the weights differ."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine, said
from ui.shell.share import BUTTON, LONGEST_NOTE, link, web_link
from ui.words.texts import as_plain

Open = Callable[..., AppTest]
NOTE = "Look at <b>head 1</b> & say *why*: $x$ [here](http://example.org)"


@given(
    st.dictionaries(st.text(min_size=1), st.lists(st.text(min_size=1), min_size=1), max_size=4),
    st.text(max_size=LONGEST_NOTE).filter(str.strip),
)
def test_everything_in_a_link_comes_out_of_it(parameters: dict[str, list[str]], note: str) -> None:
    address = link("http://127.0.0.1/heads", parameters, checkpoint="a b", fingerprint="0f", note=note)
    found = parse_qs(urlsplit(address).query, keep_blank_values=True)
    own = {"checkpoint": ["a b"], "fingerprint": ["0f"], "note": [note]}
    assert found == {**parameters, **own}


def test_a_link_without_a_note_has_none_and_a_long_one_is_cut() -> None:
    assert "note" not in link("u", {"note": ["old"]}, checkpoint="a", fingerprint="b", note="  ")
    assert link("u", {}, checkpoint="a", fingerprint="b", note="x" * 600).endswith("note=" + "x" * LONGEST_NOTE)


def test_a_link_leaves_out_the_class_and_the_view_before_a_lesson() -> None:
    parameters = {"class": ["BCDFGH"], "came_from": ["heads?layer=1"], "layer": ["1"]}
    address = link("u", parameters, checkpoint="a", fingerprint="b")
    assert parse_qs(urlsplit(address).query) == {"checkpoint": ["a"], "fingerprint": ["b"], "layer": ["1"]}


def test_share_offers_the_same_view_on_the_web_page_where_one_is_named(open_app: Open, monkeypatch) -> None:
    app = open_app("attention", checkpoint="tiny-gpt", sentence="Hello.", layer="1")
    app.session_state[BUTTON] = True
    assert not app.run().get("link_button")
    monkeypatch.setenv("GLASSFORMER_WEB_PAGE", "https://example.org/glassformer/")
    (button,) = app.run().get("link_button")
    assert button.proto.url.startswith("https://example.org/glassformer/?")
    assert web_link("https://e.org/", "http://a/attention?checkpoint=x&fingerprint=1&sentence=%26&note=n") == (
        "https://e.org/?page=attention&checkpoint=x&sentence=%26"
    )
    assert web_link("https://e.org/", "http://a/?checkpoint=x&sentence=b") == "https://e.org/?checkpoint=x&sentence=b"


def shared(app: AppTest) -> str:
    return next(code.value for code in app.code if "fingerprint=" in code.value)


@pytest.mark.parametrize("page", ["tokens", "surgery", "checkpoint"])
def test_the_link_of_a_page_opens_the_same_view(open_app: Open, tiny_checkpoint: Callable, page: str) -> None:
    first = open_app(page, checkpoint="tiny-gpt", sentence="Hello & <b>.", layer="1", edit=["zero:decoder.0.self.1"])
    is_fine(first)
    assert not [code for code in first.code if "fingerprint=" in code.value], "a link is made where it is asked for"
    first.session_state[BUTTON] = True
    first.run()
    first.text_area(key="share note").set_value(NOTE).run()
    found = {name: value[0] for name, value in parse_qs(urlsplit(shared(first)).query).items()}
    assert found["fingerprint"] == tiny_checkpoint("gpt").fingerprint
    assert (found["sentence"], found["layer"], found["note"]) == ("Hello & <b>.", "1", NOTE)
    assert found["edit"] == "zero:decoder.0.self.1"

    second = open_app(page, **found)
    is_fine(second)
    assert as_plain(NOTE) == second.info[0].value and "\\*why\\*" in second.info[0].value
    assert "made with other weights" not in said(second)
    assert [metric.value for metric in second.metric] == [metric.value for metric in first.metric]


def test_other_weights_are_said(open_app: Open, tiny_checkpoint: Callable) -> None:
    app = open_app("tokens", checkpoint="tiny-gpt", fingerprint="0123456789ab")
    is_fine(app)
    assert "other weights (fingerprint 0123456789ab) than those of tiny-gpt here" in said(app)
    app = open_app("tokens", checkpoint="tiny-gpt", fingerprint=tiny_checkpoint("gpt").fingerprint[:12])
    assert "made with other weights" not in said(app), "a link of an earlier version"
    whole = tiny_checkpoint("gpt").fingerprint
    agrees = whole[:12] + "0" * 52  # such a pair can be made in a minute
    app = open_app("tokens", checkpoint="tiny-gpt", fingerprint=agrees)
    assert f"other weights (fingerprint {agrees}) than those of tiny-gpt here ({whole})" in said(app)
    app = open_app("tokens", checkpoint="gone", fingerprint="0123456789ab")
    assert "There is no checkpoint 'gone' here" in said(app)
    assert "than those of tiny-translator here" in said(app)
