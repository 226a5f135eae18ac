"""Glassformer: follow a sentence through a Transformer. Start with ``streamlit run app.py``."""

from transformer.system.offline import stay_offline

stay_offline()

import streamlit as st

from ui.server.freed_memory import give_back_what_is_freed
from ui.server.settings import SettingError, settings

give_back_what_is_freed()
try:
    settings()  # before the rest, which reads them when it is loaded; deploy.serve does not even start
except SettingError as error:
    st.error(f"Glassformer was not started: {error}.")
    st.stop()

from ui.classroom.session import enter
from ui.compute.jobs import this_session
from ui.compute.queue import SCRIPTS
from ui.shell.admission import admit
from ui.shell.focus import begin
from ui.shell.navigation import navigation
from ui.shell.sentence import sentence_box
from ui.shell.sidebar import sidebar

with SCRIPTS.slot(this_session()):  # a class that clicks at once takes turns
    begin()  # first, because all others use the focus
    enter()
    page = navigation()
    admit()  # after the navigation, so that a visitor who has waited gets the requested page
    sidebar()
    sentence_box()
    page.run()
