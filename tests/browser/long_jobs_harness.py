"""A page with one long computation for browser tests; ``?key=…`` selects it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import streamlit as st

from ui.compute.jobs import jobs


def work(report: Callable[[int, int], None]) -> str:
    """Work for half a minute in steps of 0.05 s; "endless" works as long as a session waits for it."""
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
