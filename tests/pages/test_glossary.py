"""The glossary: a panel with the terms of each page, a search through all, and examples."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import chosen_texts, is_fine, said
from ui.shell.guidance.lessons import PLACE
from ui.words.glossary_terms import PANEL, SEARCH, glossary
from ui.words.texts import page_text


def open_panel(app: AppTest, query: str = "") -> AppTest:
    app.session_state[PANEL], app.session_state[SEARCH] = True, query
    return app.run()


def listed(app: AppTest) -> list[str]:
    """Return the keys of the terms in the panel that have an example, in order."""
    return [button.key.removeprefix("show ") for button in app.button if (button.key or "").startswith("show ")]


def keys(page: str = "") -> list[str]:
    return [term.key for term in glossary(page) if term.example]


@pytest.mark.parametrize("page", ["masks", "checkpoint"])
def test_the_panel_lists_the_terms_of_its_page_with_definition_formula_and_source(page, open_app) -> None:
    app = open_app(page, checkpoint="tiny-translator", sentence="The dog sleeps.")
    assert not listed(app), "a closed panel draws nothing"
    open_panel(app)
    is_fine(app)
    assert listed(app) == keys(page) and keys(page) != keys()
    markdown = "\n".join(element.value for element in (*app.markdown, *app.caption))
    for term in glossary(page):
        assert term.definition in said(app), term.key
        assert term.formula in markdown, term.key
        assert all(address in markdown for _, address in term.sources), term.key
    assert app.session_state["focus"].sentence == "The dog sleeps."


def test_a_search_finds_terms_of_all_pages(open_app: Callable[..., AppTest]) -> None:
    app = open_panel(open_app("tokens", checkpoint="tiny-translator"), "attention sink")
    assert listed(app) == ["sink"] and "sink" not in keys("tokens")
    app.text_input(key=SEARCH).set_value("<b>nothing</b>").run()
    assert not listed(app) and "<b>nothing</b>" in app.info[0].value.replace("\\", "").replace(":color[]{}", "")
    app.text_input(key=SEARCH).set_value("").run()
    assert listed(app) == keys("tokens")


@pytest.mark.sample(of=3)
@pytest.mark.parametrize("term", [pytest.param(term, id=term.key) for term in glossary() if term.example])
def test_an_example_opens_the_view_that_it_names(term, shipped_folder, open_app) -> None:
    """With the shipped checkpoints, and without a correction line."""
    app = open_panel(open_app("checkpoint", checkpoint="en-fr"), term.name)
    app.button(key=f"show {term.key}").click().run()
    is_fine(app)
    example, focus = term.example, app.session_state["focus"]
    assert app.title[0].value == page_text(example.page).title
    assert example.focus.keys() <= set(PLACE)
    assert {name: getattr(focus, name) for name in example.focus} == dict(example.focus)
    corrections = [caption.value for caption in app.caption if caption.value.startswith(":material/info:")]
    assert not corrections
    for key, value in example.options.items():
        # A control may be folded away, and an edit has none; both are read from the choices of the page.
        found = (app.session_state[key],) if key in app.session_state else chosen_texts(app, key)
        assert [*map(str, found)] == [str(value)], f"{key} is set"
