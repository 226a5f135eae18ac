"""Which bug is this? An original model and one with one of six bugs, or none: symptoms, guess, check."""

from ui.shell.page import page
from views.bugs.diagnosis import answer, show_checks
from views.bugs.game import ask, choose_case, needs, say_what_is_possible
from views.bugs.symptoms import show_figures, show_outputs

with page("bugs", needs=needs) as p:
    case = choose_case(p)
    show_outputs(p, case)
    guess = ask(p, case.diagnosis)
    if guess:
        answer(p, case, guess)
    show_figures(p, case)
    if guess:
        show_checks(p, case)
    else:
        say_what_is_possible(p)
