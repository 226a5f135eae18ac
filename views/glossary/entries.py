"""Content of the Glossary page: a search box, a filter by page, and the entries found."""

from collections.abc import Sequence
from typing import NoReturn

import streamlit as st

from ui.shell import choice
from ui.shell.focus import default_focus
from ui.shell.guidance.lessons import PLACE
from ui.shell.navigation import GROUPS, go_to, pages
from ui.shell.page import Page
from ui.words.glossary_terms import SEARCH, Example, Term, glossary, search
from ui.words.texts import as_plain, page_text, page_texts

# In the order of the forward pass; what a newcomer meets on the first pages.
FIRST = (
    "token",
    "embedding",
    "positional_encoding",
    "head",
    "qkv",
    "weight",
    "stream",
    "feed_forward",
    "logit",
    "softmax",
)


def chosen_terms(p: Page) -> tuple[Term, ...]:
    """Draw the search box and the filter by page, and return the terms that match both."""
    names = {"": [one["page_all"] for one in page_texts(p.name)]}
    used = {page for term in glossary() for page in term.pages}
    for name in (entry.name for group in GROUPS.values() for entry in group if entry.name in used):
        names[name] = [one.title for one in page_texts(name)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = choice.text(p.text["search"], key=SEARCH, placeholder=p.text["search_placeholder"], width=380)
        page = choice.one_of(p.text["page"], names, "", key="glossary_page", in_list=True, width=200)
    found = search(glossary(page), query)
    count = {"count": len(found), "all": len(glossary())}
    if not found:
        st.info(p.text["none"].format(query=as_plain(query)), icon=":material/search_off:")
    else:
        st.caption(p.text["all" if len(found) == count["all"] else "found"].format(**count))
    return found


def show_terms(p: Page, terms: Sequence[Term]) -> None:
    """Draw the entries, in the whole list the first words of the field before all others."""
    first = [term for key in FIRST for term in terms if term.key == key]
    if len(terms) < len(glossary()):
        _show_entries(p, terms)
        return
    st.markdown(f"#### {p.text['first']}")
    _show_entries(p, first)
    st.markdown(f"#### {p.text['others']}")
    _show_entries(p, [term for term in terms if term not in first])


def _show_entries(p: Page, terms: Sequence[Term]) -> None:
    """Draw each entry: definition, formula, source, and a view that shows it."""
    titles = {name: page.title for name, page in pages().items()}
    with st.grid(2, min_column_width=400):
        for term in terms:
            with st.container(key=f"term {term.key}", gap="xsmall"):
                formula = f"\n\n$\\displaystyle {term.formula}$" if term.formula else ""
                st.markdown(f"**{as_plain(term.name)}**: {as_plain(term.definition)}{formula}")
                with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                    if term.sources:
                        st.caption(_sources(p, term), width="content")
                    if term.example and st.button(
                        _label(p, term.example, titles),
                        key=f"show {term.key}",
                        type="tertiary",
                        icon=":material/arrow_forward:",
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


def _sources(p: Page, term: Term) -> str:
    papers = ", ".join(f"[{as_plain(paper)}]({address})" for paper, address in term.sources)
    return p.text["source"].format(papers=papers)


def _label(p: Page, example: Example, titles: dict[str, str]) -> str:
    title, checkpoint = titles.get(example.page, page_text(example.page).title), example.focus.get("checkpoint")
    if checkpoint:
        return p.text["show_with"].format(page=title, checkpoint=checkpoint)
    return p.text["show"].format(page=title)
