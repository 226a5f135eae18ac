"""Glassformer: follow a sentence through a Transformer. Start with ``streamlit run app.py``."""

from ui.compute.turns import turns
from ui.shell.focus import begin
from ui.shell.navigation import navigation
from ui.shell.sidebar import sidebar

with turns.next():  # where a whole class clicks at once, one after the other
    begin()  # first: a change of page keeps the address that is there, and so makes one entry in the browser's history
    page = navigation()
    sidebar()
    page.run()
