"""A page with one long computation, for the test in a browser: ``?key=…`` says which one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import streamlit as st

from ui.compute.jobs import jobs


def work(report: Callable[[int, int], None]) -> str:
    """Half a minute, in steps of a twentieth of a second; "endless" for as long as somebody looks."""
    for step in itertools.count() if key.startswith("endless") else range(600):
        report(step, 600)
        time.sleep(0.05)
    return "done"


key = st.query_params.get("key", "one")
st.title(key)
st.caption("before")
if st.button("Something else"):
    st.markdown("something else was done")
found = jobs.result(key, "harness", work, doing="Counting …")
st.markdown(f"found: {found}")
