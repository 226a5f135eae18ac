"""The button that downloads the handout of the current view, in the Share menu of every page."""

import streamlit as st

from transformer.errors import MessageError
from ui.shell.focus import Focus
from ui.shell.page import Page
from ui.words.catalogues import translate
from ui.words.texts import as_plain, language, use_language
from views.overview.handout import check_length, handout
from views.overview.handout.writing import handout_text


def show_handout_button(focus: Focus) -> None:
    """Draw the button; it is disabled, with the reason as its help, if the handout cannot be made.

    The handout follows the whole pass, as Overview does, whichever page it is downloaded from.
    """
    text, spoken, whole_pass, problem = handout_text(), language(), Page("overview", focus), ""
    try:
        check_length(whole_pass.trace)
    except MessageError as error:
        problem = translate(error)

    def make() -> str:  # only after a click, and then outside of the session's run
        with use_language(spoken):
            return handout(whole_pass.trace, focus)

    st.download_button(
        text["button"],
        data=make,
        file_name=f"{whole_pass.checkpoint.name}-handout.html",
        mime="text/html",
        icon=":material/article:",
        help=as_plain(problem) or text["button_help"],
        disabled=bool(problem),
        key="handout",
        on_click="ignore",
    )
