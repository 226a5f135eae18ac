"""A figure that the store drops once the page has been drawn; the page shows how often it ran."""

import plotly.graph_objects as go
import streamlit as st

from ui.compute.store import store
from ui.show.figures import show_figure

st.session_state["runs"] = st.session_state.get("runs", 0) + 1
st.markdown(f"run {st.session_state['runs']}")
show_figure(go.Figure(go.Bar(x=["a", "b"], y=[1.5, 2.5])), name="bars", caption="Two bars.")
store.give_up("figures")
