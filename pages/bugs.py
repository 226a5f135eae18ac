"""Which bug is this? A patient with one of six mistakes, or none: pictures first, then a guess, then the check."""

from transformer.faults import fault_checks as checks
from transformer.faults import forward_faults
from transformer.faults.training_faults import train_and_save
from ui.shell.page import page
from ui.show.figures import show_snippet, show_source
from views.bugs.diagnosis import answer, show_checks, snippet
from views.bugs.game import about_guesses, guessed, patient_number
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
    guess = guessed(p, diagnosis)
    if guess:
        answer(p, diagnosis, guess)
    pictures(p, diagnosis)
    if not guess:
        about_guesses(p)
    else:
        show_checks(p, diagnosis)
        show_snippet("bugs", snippet(p, diagnosis))
        show_source(*SOURCES[diagnosis.fault])
