"""A page with every element that shows third-party text, once per text of ``?file=`` (a JSON list).

Without a file: a figure that the store drops once the page has been drawn, and how often the page ran.
"""

import json
from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

from ui.compute.store import store
from ui.show.figures import show_figure
from ui.words.texts import as_plain

if "file" not in st.query_params:
    st.session_state["runs"] = st.session_state.get("runs", 0) + 1
    with st.container(key="runs"):
        st.markdown(f"run {st.session_state['runs']}")
    show_figure(go.Figure(go.Bar(x=["a", "b"], y=[1.5, 2.5])), name="bars", caption="Two bars.")
    store.give_up("figures")
    st.stop()

for number, text in enumerate(json.loads(Path(st.query_params["file"]).read_text(encoding="utf-8"))):
    plain, key = as_plain(text), f"part {number}"
    with st.container(key=f"shown {number}"):
        st.markdown(plain)
        st.markdown(f"**{plain}**")
        st.subheader(plain, anchor=False)
        st.markdown(f"- {plain}")
        st.markdown(f":green[{plain}]")
        st.caption(plain)
        st.info(plain)
        st.metric(plain, plain)
        st.button(plain, key=f"{key} button")
        st.toggle(plain, key=f"{key} toggle")
        st.radio(plain, [plain], key=f"{key} radio")
        st.segmented_control(plain, [0], format_func=lambda _, plain=plain: plain, key=f"{key} segments")
        st.pills(plain, [0], format_func=lambda _, plain=plain: plain, key=f"{key} pills")
        st.selectbox(plain, [], key=f"{key} box")
        st.popover(plain, key=f"{key} popover")
        st.expander(plain, key=f"{key} expander")
        st.table([[plain]], border=False)
        st.tabs([plain], key=f"{key} tabs")
    if number == 0:
        with st.container(key="hover"):
            st.button("hover", help=plain)
        st.toast(plain, duration="infinite")
