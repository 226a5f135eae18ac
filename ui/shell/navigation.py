"""The list of pages, and navigation between them that keeps the focus."""

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import streamlit as st

from transformer.config import ModelConfig
from ui.compute.loading import REPOSITORY, readable_config
from ui.server.settings import settings
from ui.server.streamlit_private import StreamlitPage, hash_of, page_hash, runs_a_script
from ui.shell import address, page_state
from ui.shell.address import PAGE
from ui.shell.focus import add_note, change, current, write_address, write_address_of
from ui.words.glossary_terms import PANEL, SEARCH
from ui.words.once_a_run import once_a_run
from ui.words.texts import common, language, page_text

SIDEBAR_WIDTH = 280  # pixels
DESK = "desk"  # the instructor's page, on a server that has a secret for it
NO_SENTENCE = ("by_hand", "checkpoint", DESK, "lessons")  # pages that show no sentence
TEXT, TEXT_OR_IMAGE = ("text",), ("text", "image")
FORMER = {"glossary": "overview", "bugs": "lessons", "paths": "compare"}  # where older links lead
# The choices there that show the content of the former page.
_SHOWING = {"bugs": {"exercise": "bugs"}, "paths": {"compare_more": "vectors"}}
LABORATORY_SIGN = ":material/science:"  # sign before the name of each laboratory page, and on the page itself


@dataclass(frozen=True)
class Entry:
    """One page; ``name`` is its file ``pages/<name>.py``, its address and the name of its text.

    ``reads`` lists the kinds of input whose models the page can show; with ``of_output``, it needs a model that
    predicts tokens or a class. A page without ``in_menu`` is neither in the row above the pages nor in its menus, which
    have no space for more. A ``wide`` page opens without the sidebar.
    """

    name: str
    reads: tuple[str, ...] = TEXT_OR_IMAGE
    of_output: bool = False
    in_menu: bool = True
    wide: bool = False

    def lacks(self, config: ModelConfig) -> str:
        """Return the name of the text, ``common("problem.…")``, on why a page cannot show a model, or ""."""
        if "image" not in self.reads and config.reads_images:
            return "needs_text"
        if self.of_output and config.encodes_sentences:
            return "no_image_words" if config.reads_images else "no_words"
        return ""


# The laboratory is a separate menu; all other pages are in one row above the page.
GROUPS: dict[str, tuple[Entry, ...]] = {
    "follow": (
        Entry("overview"),
        Entry("tokens", reads=TEXT),
        Entry("embeddings"),
        Entry("positions", reads=TEXT),
        Entry("attention"),
        Entry("heads"),
        Entry("add_norm", reads=TEXT),
        Entry("feed_forward", reads=TEXT),
        Entry("decoding", of_output=True),
    ),
    "laboratory": (
        Entry("by_hand", wide=True),
        Entry("masks", reads=TEXT),
        Entry("surgery", reads=TEXT, of_output=True),
        Entry("lens", reads=TEXT, of_output=True),
        Entry("compare", reads=TEXT),
        Entry("training", reads=TEXT),
        Entry("checkpoint"),
    ),
    "learn": (Entry("lessons"), Entry(DESK, in_menu=False, wide=True)),
}
ENTRIES = {entry.name: entry for group in GROUPS.values() for entry in group}
_IN_LABORATORY = frozenset([entry.name for entry in GROUPS["laboratory"]])
_WIDE = frozenset([name for name, entry in ENTRIES.items() if entry.wide])
_IN_NO_MENU = frozenset([name for name, entry in ENTRIES.items() if not entry.in_menu])


@once_a_run
def pages() -> dict[str, StreamlitPage]:
    """Return the pages whose file exists, by name; the app opens with the first."""
    made = _make_pages(tuple(page_names()), language(), runs_a_script())
    # Copies: a run marks its page as drawable, and another session's run must not undo that.
    return {name: copy(page) for name, page in made.items()}


@once_a_run
def pages_of(config: ModelConfig) -> dict[str, StreamlitPage]:
    """Return the existing pages that show something of a model."""
    return {name: page for name, page in pages().items() if not ENTRIES[name].lacks(config)}


@lru_cache(maxsize=32)  # languages; creating seventeen pages takes 3 ms of the 50 ms of a run
def _make_pages(names: tuple[str, ...], _language: str, _within_a_run: bool) -> dict[str, StreamlitPage]:
    """Return the pages, cached separately outside of a run, where they cannot be drawn."""
    first = names[0]
    return {
        name: st.Page(
            REPOSITORY / "pages" / f"{name}.py",
            title=page_text(name).title,
            icon=LABORATORY_SIGN if name in _IN_LABORATORY else "",
            url_path=name if name != first else "home",  # never visible: it is served at "/"
            default=name == first,
            visibility="hidden" if name in _IN_NO_MENU else "visible",
        )
        for name in names
    }


@once_a_run
def page_names() -> list[str]:
    """Return the names of existing pages, first in the order of the forward pass, then of the laboratory."""
    files = {*os.listdir(f"{REPOSITORY}/pages")} - (set() if settings().instructor else {f"{DESK}.py"})
    return [name for name in ENTRIES if f"{name}.py" in files]


def neighbours_of(name: str) -> tuple[str | None, str | None]:
    """Return the names of the pages before and after a page, among those that can show the model.

    They are ``None`` if there is none, and for a page that is not in the list.
    """
    config, names = readable_config(current().checkpoint), page_names()
    if name not in names:
        return None, None

    def first_of(others: Sequence[str]) -> str | None:
        return next((other for other in others if config is None or not ENTRIES[other].lacks(config)), None)

    place = names.index(name)
    return first_of(names[:place][::-1]), first_of(names[place + 1 :])


def navigation() -> StreamlitPage:
    """Set up the browser tab, draw the navigation and return the page to run."""
    # A named icon would be fetched from another host.
    icon = str(Path(__file__).with_name("icon.svg"))
    existing, asked = pages(), page_hash()
    named = next((name for name, page in existing.items() if hash_of(page) == asked), "")  # by the browser
    without = current().presenter or _requested_page(named) in _WIDE
    st.set_page_config(page_icon=icon, layout="wide", initial_sidebar_state="collapsed" if without else SIDEBAR_WIDTH)
    shown: dict[str, list[StreamlitPage]] = {"": []}  # a page without a heading is in the row itself
    for title, group in GROUPS.items():
        heading = common("navigation.laboratory") if title == "laboratory" else ""
        shown.setdefault(heading, []).extend(existing[entry.name] for entry in group if entry.name in existing)
    first = next(iter(existing))
    shown[""].extend(_former_page(name, existing) for name in FORMER)
    if urlsplit(st.context.url or "").path.rpartition("/")[2] == first:  # it is served at "/"
        lead = partial(_lead_from, first, existing)
        shown[""].append(st.Page(lead, title=existing[first].title, url_path=first, visibility="hidden"))
    _announce(named)
    page = st.navigation(shown, position="top")
    st.set_page_config(page_title=f"{page.title} · Glassformer")
    _open_named_page(existing)
    if st.context.is_embedded:  # embed=true showed one figure alone
        add_note(common("note.gone", name="embed"))
    if name := named or next((name for name, one in existing.items() if one.url_path == page.url_path), ""):
        page_state.enter(name)
    return page


def _announce(name: str) -> None:
    """Send the address of a newly opened page before the navigation; see ``ui.shell.address``."""
    if not name:
        return
    left = page_state.left_for(name)
    if left and not address.is_opening():  # by a link of the navigation; otherwise ``go_to`` has written it
        write_address_of(left)
    page_state.turn_to(name)
    if left:
        write_address(opening=name)


def _requested_page(named: str) -> str:
    """Return the page that is about to be drawn, by its name or by the last part of its address."""
    path = urlsplit(st.context.url or "").path
    return named or address.value(PAGE) or path.rstrip("/").rpartition("/")[2]


def _open_named_page(existing: dict[str, StreamlitPage]) -> None:
    """Open ``?page=attention``, which the web page's addresses contain instead of ``/attention``."""
    named = address.value(PAGE)
    if named in existing or named in FORMER:
        _lead_from(named, existing)


def _former_page(name: str, existing: dict[str, StreamlitPage]) -> StreamlitPage:
    """Return the page at a former address, whose file leads on.

    Without the file, Streamlit would show "Page not found" if this is the first request to a new server.
    """
    title = existing[FORMER[name]].title
    return st.Page(REPOSITORY / "pages" / f"{name}.py", title=title, url_path=name, visibility="hidden")


def lead_from_former(name: str) -> NoReturn:
    """Open the page that has the content of a former one, from the file of the former page.

    Streamlit runs such a file alone if it is the first request to a new server; see ``ui.page.page``.
    """
    if "focus" not in st.session_state:  # app.py has not run
        navigation()
        st.rerun()
    _lead_from(name, pages())


def _lead_from(name: str, existing: dict[str, StreamlitPage]) -> NoReturn:
    """Open a page by its name, or the one that has the content of a former page, and keep the view."""
    wanted, choices = FORMER.get(name, name), dict(_SHOWING.get(name, {}))
    if name == "paths" and (second := address.value("paths corrupted")):
        choices["second"] = second
    page_state.take_also(choices)
    if name == "glossary":
        st.session_state[PANEL], st.session_state[SEARCH] = True, address.value(SEARCH)
    address.open_page(wanted, existing[wanted])


def go_to(name: str, *, notes: Sequence[str] = (), **focus_values: object) -> NoReturn:
    """Open another page with a focus, e.g. ``go_to("attention", stack="encoder", layer=1, head=3)``.

    ``notes``: lines to show there, about the address that has led to it.
    """
    write_address_of(page_state.current_page())
    leave_for(name, notes=notes, **focus_values)


def leave_for(name: str, *, notes: Sequence[str] = (), **focus_values: object) -> NoReturn:
    """Open another page as ``go_to`` does, but do not write the address of this one.

    The caller has done so, before it changed the choices of this page.
    """
    existing = pages()
    if name not in existing:
        raise ValueError(f"there is no page {name!r}; there are {', '.join(existing)}")
    change(**focus_values)
    if notes:
        add_note(*notes)
    address.open_page(name, existing[name])


def mark_laboratory(name: str) -> None:
    """Draw the badge of a page of the laboratory."""
    if name in _IN_LABORATORY:
        st.badge(common("navigation.laboratory"), icon=LABORATORY_SIGN, color="gray", width="content")


def links_onward(name: str) -> None:
    """Draw links at the end of a page to the previous and the next page, keeping the focus."""
    before, after = neighbours_of(name)
    with st.container(horizontal=True, horizontal_alignment="distribute", key="onward"):
        with st.container(width="content", key="page before"):
            if before:
                _link(before, "before", icon=":material/arrow_back:")
        with st.container(width="content", key="page after"):
            if after:
                _link(after, "after", icon=":material/arrow_forward:", icon_position="right")


def _link(name: str, text: str, **more: str) -> None:
    page = pages()[name]
    st.page_link(page, label=common(f"navigation.{text}", page=page.title), **more)
