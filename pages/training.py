"""Training: how did it get like this? The same sentence early and late; curves; a live training."""

from ui.lab.training_step import step_in_detail
from ui.shell.page import page
from views.training.early_and_late import choose_section, early_and_late
from views.training.live_training import now
from views.training.time_lapse import time_lapse

SECTIONS = {"early": early_and_late, "time": time_lapse, "now": now, "step": step_in_detail}

with page("training", strip=False) as p:
    SECTIONS[choose_section(p, list(SECTIONS))](p)
