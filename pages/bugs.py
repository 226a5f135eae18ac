"""Which bug is this? A patient with one of six mistakes, or none: pictures first, then a guess, then the check."""

from transformer.faults import checks, forward_faults
from transformer.faults.training_faults import train_and_save
from ui.shell.page import page
from ui.show.figures import show_snippet, show_source
from views.bugs.diagnosis import reveal, snippet
from views.bugs.game import guessed, patient_number
from views.bugs.symptoms import pictures

SOURCES = {
    "scale": (checks.scale, forward_faults.unscaled_scores),
    "positions": (checks.positions, forward_faults.without_positions),
    "causal": (checks.causal, train_and_save),
    "target": (checks.target, train_and_save),
    "padding": (checks.padding, forward_faults.without_padding_mask),
    "norm": (checks.norm, forward_faults.other_norm_order),
    "healthy": tuple(checks.CHECKS.values()),
}

with page("bugs", needs=("stack", "kind", "layer", "head")) as p:
    diagnosis = patient_number(p)
    pictures(p, diagnosis)
    guess = guessed(p, diagnosis)
    if guess:
        reveal(p, diagnosis, guess)
        show_snippet(snippet(p, diagnosis))
        show_source(*SOURCES[diagnosis.fault])
