"""The glossary: a button beside each title, with the page's terms and a search through all."""

from collections.abc import Sequence
from typing import NoReturn

import streamlit as st

from ui.shell import choice
from ui.shell.focus import default_focus
from ui.shell.fragments import fragment
from ui.shell.guidance.lessons import PLACE
from ui.shell.navigation import go_to, pages
from ui.words.glossary_terms import PANEL, SEARCH, Example, Term, glossary, search
from ui.words.texts import as_plain, common, page_text


@fragment
def glossary_panel(page: str) -> None:
    """Draw the button, and while it is open the found terms; without a search, those of the page.

    A page without terms of its own shows all terms.
    """
    panel = st.popover(common("glossary.button"), icon=":material/menu_book:", key=PANEL, on_change="rerun")
    if not panel.open:
        return
    with panel:
        query = st.text_input(common("glossary.search"), key=SEARCH, placeholder=common("glossary.search_placeholder"))
        found = search(glossary(), query) if query.strip() else glossary(page) or glossary()
        if not found:
            st.info(common("glossary.none", query=as_plain(query)), icon=":material/search_off:")
        else:
            st.caption(common("glossary.found", count=len(found), all=len(glossary())))
        _show_entries(found)


def _show_entries(terms: Sequence[Term]) -> None:
    """Draw each entry: definition, formula, source, and a button that opens a view that shows it."""
    for term in terms:
        with st.container(key=f"term {term.key}", gap="xsmall"):
            formula = f"\n\n$\\displaystyle {term.formula}$" if term.formula else ""
            st.markdown(f"**{as_plain(term.name)}**: {as_plain(term.definition)}{formula}")
            if term.sources:
                papers = ", ".join(f"[{as_plain(paper)}]({address})" for paper, address in term.sources)
                st.caption(common("glossary.source", papers=papers))
            if term.example and st.button(
                _label(term.example), key=f"show {term.key}", type="tertiary", icon=":material/arrow_forward:"
            ):
                open_example(term.example)


def open_example(example: Example) -> NoReturn:
    """Open the view that shows a term, which ends this run.

    If the view names a checkpoint, the rest of the focus is reset for that checkpoint; otherwise it stays as it is.
    """
    for key, value in example.options.items():
        choice.put(key, value, page=example.page)
    own = {}
    if "checkpoint" in example.focus:
        default = default_focus(str(example.focus["checkpoint"]))
        own = {name: getattr(default, name) for name in PLACE}
    go_to(example.page, **(own | dict(example.focus)))


def _label(example: Example) -> str:
    title = pages()[example.page].title if example.page in pages() else page_text(example.page).title
    if checkpoint := example.focus.get("checkpoint"):
        return common("glossary.show_with", page=title, checkpoint=checkpoint)
    return common("glossary.show", page=title)
