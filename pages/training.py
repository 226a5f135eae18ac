"""Training: how did the model come to be like this?"""

from ui.lab.training_step import step_in_detail
from ui.shell.choice import chosen_section
from ui.shell.page import page
from views.training.curves import curves
from views.training.live_training import now
from views.training.time_lapse import time_lapse

SECTIONS = {"curves": curves, "time": time_lapse, "now": now, "step": step_in_detail}

with page("training", strip=False) as p:
    SECTIONS[chosen_section(p.text, list(SECTIONS), key="training section")](p)
