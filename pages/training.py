"""Training: how did it get like this?"""

from __future__ import annotations

from ui import page
from ui.live_training import now
from ui.selectors import chosen_section
from ui.time_lapse import time_lapse
from ui.training_step_views import step_in_detail
from ui.training_views import curves

SECTIONS = {"curves": curves, "time": time_lapse, "now": now, "step": step_in_detail}

with page("training", strip=False) as p:
    SECTIONS[chosen_section(p.text, list(SECTIONS), key="training section")](p)
