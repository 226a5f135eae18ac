"""Glassformer: follow a sentence through a Transformer. Start with ``streamlit run app.py``."""

from __future__ import annotations

from ui.navigation import navigation
from ui.sidebar import sidebar

page = navigation()
sidebar()
page.run()
