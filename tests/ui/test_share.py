"""A shared link contains the whole view, restores it, and says if the weights differ."""

from __future__ import annotations

import ast
from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT
from tests.kinds_of_text import SENDABLE
from tests.pages.conftest import is_fine, said
from ui.shell import focus as shared_focus
from ui.shell.focus import LONGEST, Focus
from ui.shell.share import BUTTON, LONGEST_NOTE, link, web_link
from ui.words.texts import as_plain

Open = Callable[..., AppTest]
NOTE = "Look at <b>head 1</b> & say *why*: $x$ [here](http://example.org)"
DEFAULT = Focus(checkpoint="en-fr")


@given(
    st.dictionaries(st.text(min_size=1), st.lists(st.text(min_size=1), min_size=1), max_size=4),
    st.text(max_size=LONGEST_NOTE).filter(str.strip),
)
def test_everything_in_a_link_comes_out_of_it(parameters: dict[str, list[str]], note: str) -> None:
    address = link("http://127.0.0.1/heads", parameters, checkpoint="a b", fingerprint="0f", note=note)
    found = parse_qs(urlsplit(address).query, keep_blank_values=True)
    assert found == {**parameters, "checkpoint": ["a b"], "fingerprint": ["0f"], "note": [note]}


@pytest.mark.parametrize("name", SENDABLE)
def test_a_shared_link_gives_back_any_text_that_a_browser_can_send(name: str) -> None:
    typed = Focus(checkpoint="en-fr", sentence=SENDABLE[name], target=SENDABLE[name])
    told = {key: [value] for key, value in typed.to_address(default=DEFAULT).items()}
    shared = link("http://127.0.0.1:8501/attention", told, checkpoint="en-fr", fingerprint="0")
    assert shared.isascii() and shared.isprintable()
    opened = {key: value[-1] for key, value in parse_qs(urlsplit(shared).query, keep_blank_values=True).items()}
    found, notes = Focus.from_address(opened, default=DEFAULT)
    wanted = typed if len(SENDABLE[name]) <= LONGEST else DEFAULT
    assert (found.sentence, found.target, notes) == (wanted.sentence, wanted.target, ())


def test_a_link_leaves_out_the_class_and_the_view_before_a_lesson() -> None:
    parameters = {"class": ["BCDFGH"], "came_from": ["heads?layer=1"], "layer": ["1"], "note": ["old"]}
    address = link("u", parameters, checkpoint="a", fingerprint="b", note="  ")
    assert parse_qs(urlsplit(address).query) == {"checkpoint": ["a"], "fingerprint": ["b"], "layer": ["1"]}
    assert link("u", {}, checkpoint="a", fingerprint="b", note="x" * 600).endswith("note=" + "x" * LONGEST_NOTE)


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


def test_a_link_with_a_note_is_made_where_it_is_asked_for_and_opens_its_view(open_app: Open, tiny_checkpoint) -> None:
    app = open_app("surgery", checkpoint="tiny-gpt", sentence="Hello & <b>.", layer="1", edit=["zero:decoder.0.self.1"])
    assert not [code for code in app.code if "fingerprint=" in code.value]
    app.session_state[BUTTON] = True
    app.run()
    app.text_area(key="share note").set_value(NOTE).run()
    shared = next(code.value for code in app.code if "fingerprint=" in code.value)
    found = {name: value[0] for name, value in parse_qs(urlsplit(shared).query).items()}
    assert found["fingerprint"] == tiny_checkpoint("gpt").fingerprint
    names = ("sentence", "layer", "note", "edit")
    assert [found[name] for name in names] == ["Hello & <b>.", "1", NOTE, "zero:decoder.0.self.1"]
    opened = open_app("surgery", **found)
    is_fine(opened)
    assert opened.info[0].value == as_plain(NOTE) and found["fingerprint"] not in said(opened)
    assert [metric.value for metric in opened.metric] == [metric.value for metric in app.metric]


def test_other_weights_are_said(open_app: Open, tiny_checkpoint: Callable) -> None:
    whole = tiny_checkpoint("gpt").fingerprint
    agrees = whole[:12] + "0" * 52  # such a pair can be made in a minute
    for checkpoint, fingerprint, is_said in (
        ("tiny-gpt", "0123456789ab", True),
        ("tiny-gpt", whole[:12], False),  # a link of an earlier version
        ("tiny-gpt", agrees, True),
        ("gone", "0123456789ab", True),
    ):
        app = open_app("tokens", checkpoint=checkpoint, fingerprint=fingerprint)
        is_fine(app)
        assert (f"fingerprint {fingerprint}" in said(app)) is is_said
        assert (f"({whole})" in said(app)) is (fingerprint == agrees), "both whole, where the first digits agree"


# ---- the address ----------------------------------------------------------------------------------------------------


def test_one_module_alone_reads_and_writes_the_address() -> None:
    """A replacement for Streamlit's ``st.query_params``, and a page opened with parameters."""
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("ui", "views", "pages")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if "query_params" in (getattr(node, "attr", ""), getattr(node, "id", ""), getattr(node, "arg", ""))
    }
    assert found == {"ui/shell/address.py"}


def test_a_run_sends_the_address_once_and_only_if_it_has_changed(open_app: Open, monkeypatch) -> None:
    app = open_app("surgery", checkpoint="tiny-translator", sentence="The cat sat on the mat.", layer="1", head="1")
    is_fine(app.run())
    sent = []
    send = QueryParams._send_query_param_msg

    def counted(parameters: QueryParams) -> None:
        send(parameters)
        sent.append(urlencode(parameters._query_params, doseq=True))

    monkeypatch.setattr(QueryParams, "_send_query_param_msg", counted)
    is_fine(app.run())
    assert not sent
    changes = {"layer": 0, "head": 999, "sentence": "The dog sleeps."}
    app.session_state["focus"] = shared_focus.replace(app.session_state["focus"], **changes)
    is_fine(app.run())
    assert len(sent) == 1, "with what the page corrects"
    assert "layer" not in app.query_params and app.query_params["sentence"] == "The dog sleeps."
