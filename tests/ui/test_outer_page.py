"""An app in a frame of another site: links contain that page's address, which restores the same view."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import open_by_address
from tests.pages.conftest import is_fine
from ui.shell.outer_page import outer_origin, outer_page, seen_address
from views.lessons.worksheet import read_link

SPACE = "https://huggingface.co/spaces/somebody/glassformer"
Open = Callable[..., AppTest]


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLASSFORMER_OUTER_PAGE", raising=False)
    monkeypatch.setenv("SPACE_ID", "somebody/glassformer")


def test_a_space_is_known_by_what_hugging_face_says_of_it(space: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (outer_page(), outer_origin()) == (SPACE, "https://huggingface.co")
    monkeypatch.setenv("GLASSFORMER_OUTER_PAGE", "http://school.example:8080/class?x=1")
    assert outer_origin() == "http://school.example:8080"
    monkeypatch.delenv("GLASSFORMER_OUTER_PAGE")
    monkeypatch.delenv("SPACE_ID")
    assert (outer_page(), outer_origin()) == ("", "")


@pytest.mark.parametrize("address", ["school.example", "javascript:alert(1)", "https://"])
def test_what_is_no_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_OUTER_PAGE", address)
    with pytest.raises(ValueError, match="it must be an address with http:// or https://"):
        outer_page()


def test_the_page_becomes_a_parameter(space: None, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"layer": ["2"], "edit": ["a", "b"]}
    assert seen_address("https://x.hf.space/attention", parameters) == (SPACE, {"page": ["attention"], **parameters})
    assert seen_address("https://x.hf.space/", parameters) == (SPACE, parameters)
    monkeypatch.delenv("SPACE_ID")
    assert seen_address("https://x.example/attention", parameters) == ("https://x.example/attention", parameters)


def test_a_shared_link_is_that_of_the_outer_page(space: None, open_app: Open) -> None:
    app = open_app("attention", layer="1")
    app.session_state["share"] = True
    link = urlsplit(next(code.value for code in app.run().code if code.value.startswith("http")))
    assert link._replace(query="").geturl() == SPACE
    assert parse_qs(link.query)["layer"] == ["1"] and "fingerprint" in parse_qs(link.query)


def test_a_page_that_is_named_is_turned_to_with_all_of_its_view(checkpoints_folder: Path) -> None:
    app = open_by_address("overview", {"page": "attention", "layer": "1"})
    is_fine(app)
    assert app.title[0].value == "Attention"
    assert app.session_state["focus"].layer == 1
    assert app.query_params.get("page") is None and app.query_params["layer"] in ("1", ["1"])


@pytest.mark.parametrize("name", ["overview", "no such page", "../app", ""])
def test_another_name_leads_to_the_first_page(checkpoints_folder: Path, name: str) -> None:
    app = open_by_address("overview", {"page": name})
    is_fine(app)
    assert app.title[0].value == "Overview" and app.query_params.get("page") is None


def test_a_worksheet_is_made_from_such_a_link(space: None) -> None:
    pages = {"": "overview", "attention": "attention"}
    assert read_link(f"{SPACE}?page=attention&layer=1", pages=pages) == ("attention", {"layer": "1"})
    assert read_link(f"{SPACE}?layer=1", pages=pages) == ("overview", {"layer": "1"})
    assert read_link("https://x.hf.space/attention?layer=1", pages=pages) == ("attention", {"layer": "1"})
