"""Training: how did it get like this? Curves; one sentence through training; a live training."""

from ui.lab.training_step import step_in_detail
from ui.page.page import page
from views.training.live_training import now
from views.training.training_sections import curves, time_lapse

SECTIONS = {"early": curves, "time": time_lapse, "now": now, "step": step_in_detail}

with page("training", strip=False) as p:
    section = p.option("section", list(SECTIONS), key="training section", wrap=True, label_visibility="collapsed")
    SECTIONS[section](p)
