"""The glossary: all terms on one page, by search or by page, and a page's terms behind its button."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT, open_by_address
from tests.nights import by_day
from tests.pages.conftest import chosen_texts, is_fine, said
from ui.shell.guidance.lessons import PLACE
from ui.words.glossary_terms import Term, glossary
from ui.words.texts import page_text
from views.glossary.entries import FIRST

TEXT = page_text("glossary")


def listed(app: AppTest) -> list[str]:
    """Return the keys of the terms on the page that have an example, in order."""
    return [button.key.removeprefix("show ") for button in app.button if (button.key or "").startswith("show ")]


def keys(page: str = "") -> list[str]:
    return [term.key for term in glossary(page) if term.example]


def test_every_term_is_listed_with_definition_formula_and_source(open_app: Callable[..., AppTest]) -> None:
    app = open_app("glossary")
    is_fine(app)
    first = [key for key in FIRST if key in keys()]
    assert listed(app) == first + [key for key in keys() if key not in first]
    assert {*FIRST} <= {term.key for term in glossary()}
    markdown = "\n".join(element.value for element in (*app.markdown, *app.caption))
    for term in glossary():
        assert term.definition in said(app), term.key
        assert term.formula in markdown, term.key
        assert all(address in markdown for _, address in term.sources), term.key
    assert TEXT["all"].format(count=len(glossary())) in said(app)


def test_a_search_and_the_filter_by_page_narrow_the_list(open_app: Callable[..., AppTest]) -> None:
    app = open_app("glossary")
    app.text_input(key="glossary_search").set_value("attention sink").run()
    assert listed(app) == ["sink"]
    assert chosen_texts(app, "glossary_search") == ("attention sink",), "and the address has it"
    app.text_input(key="glossary_search").set_value("<b>nothing</b>").run()
    assert not listed(app) and "<b>nothing</b>" in app.info[0].value.replace("\\", "").replace(":color[]{}", "")
    app.text_input(key="glossary_search").set_value("").run()
    app.selectbox(key="glossary_page").set_value("masks").run()
    is_fine(app)
    assert listed(app) == keys("masks")
    assert chosen_texts(app, "glossary_page") == ("masks",)


def test_the_button_of_a_page_lists_its_terms_and_leads_to_their_entries(open_app: Callable[..., AppTest]) -> None:
    app = open_app("masks", checkpoint="tiny-translator", sentence="The dog sleeps.")
    terms = [line for line in said(app).splitlines() if line.startswith("- **")]
    assert [line[4:].partition("**")[0] for line in terms] == [term.name for term in glossary("masks")]
    app.button(key="glossary all").click().run()
    is_fine(app)
    assert app.title[0].value == TEXT.title and listed(app) == keys("masks")
    assert app.session_state["focus"].sentence == "The dog sleeps.", "the focus is kept"


def test_what_to_look_for_links_the_terms_that_it_uses(open_app: Callable[..., AppTest]) -> None:
    app = open_app("attention", checkpoint="tiny-translator")
    assert any("](glossary?glossary_search=" in element.value for element in app.markdown)


@pytest.mark.parametrize(
    "term",
    by_day(
        [term for term in glossary() if term.example],
        ["image_patch", "beam", "induction", "position_bias"],
        id_of="key",
    ),
)
def test_an_example_opens_the_view_that_it_names(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the shipped checkpoints, and without a correction line."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_by_address("glossary", {"glossary_search": term.name})
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
