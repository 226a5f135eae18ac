"""Training: how did it get like this? Curves; one sentence through training; a live training."""

from ui.page.page import page
from views.training.live_training import now
from views.training.one_step import one_step
from views.training.training_sections import curves, time_lapse

SECTIONS = {"early": curves, "time": time_lapse, "now": now, "step": one_step}

with page("training", strip=False) as p:
    section = p.option("section", list(SECTIONS), key="training section", wrap=True, label_visibility="collapsed")
    SECTIONS[section](p)
