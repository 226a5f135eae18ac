"""Glassformer: follow a sentence through a Transformer. Start with ``streamlit run app.py``."""

from __future__ import annotations

import streamlit as st

from ui.navigation import navigation
from ui.sidebar import sidebar

st.set_page_config(page_title="Glassformer", page_icon=":material/neurology:", layout="wide")
page = navigation()
sidebar()
page.run()
