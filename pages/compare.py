"""Compare: what changes when one thing changes? Two sentences, two checkpoints, three kinds of model."""

from ui.shell.choice import chosen_option
from ui.shell.page import page
from views.compare.compared_layers import layers
from views.compare.modes import checkpoints, kinds, sentences

MODES = {"sentences": sentences, "checkpoints": checkpoints, "kinds": kinds, "layers": layers}

with page("compare", needs=("kind", "layer", "head"), strip=False) as p:
    modes = ["sentences", "layers"] if p.reads_pictures else list(MODES)  # other models would read the signs as text
    mode = chosen_option(p.text, "mode", modes, key="compare_mode", label_visibility="collapsed", wrap=True)
    MODES[mode](p)
