"""Training: how did it get like this?"""

from __future__ import annotations

import streamlit as st

from ui import page
from ui.live_training import now
from ui.time_lapse import time_lapse
from ui.training_step_views import step_in_detail
from ui.training_views import curves

SECTIONS = {"curves": curves, "time": time_lapse, "now": now, "step": step_in_detail}

with page("training", strip=False) as p:
    names = {p.text[f"section_{section}"]: show for section, show in SECTIONS.items()}
    chosen = st.segmented_control(
        p.text["section"],
        list(names),
        default=p.text["section_curves"],
        required=True,
        key="training section",
        bind="query-params",
        persist_state="session",
        wrap=True,
    )
    names[chosen](p)
