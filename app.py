"""Glassformer: follow a sentence through a Transformer. Start with ``streamlit run app.py``."""

from ui.compute.turns import turns
from ui.shell.admission import admit
from ui.shell.focus import begin
from ui.shell.navigation import navigation
from ui.shell.sidebar import sidebar

with turns.next():  # a class that clicks at once takes turns
    begin()  # first: a change of page keeps the address, and so makes one entry in the browser's history
    admit()
    page = navigation()
    sidebar()
    page.run()
