"""Decoding: how does the model choose words?"""

from transformer import decode
from transformer.attribution.leave_one_out import leave_one_out
from transformer.models import Classifier
from transformer.predictions.answer_probabilities import fillings
from transformer.predictions.word_alignment import word_alignment
from transformer.runs.beam_search import beam_search
from transformer.runs.decoding_strategies import reshape_logits
from ui.lab.uncertain_output import say_uncertain
from ui.page.page import page
from ui.shell.choice import chosen_section
from ui.show.figures import show_source
from views.decoding.alignment import alignment
from views.decoding.beam_tree import beam_tree
from views.decoding.decoding_parts import follow_typed_text, kind_of_answer, needed, sections_of
from views.decoding.encoder_answers import classify, fill_blanks, marked_position
from views.decoding.step_by_step import step_by_step
from views.decoding.strategies import strategies

SECTIONS = {
    "step": (step_by_step, (decode, reshape_logits)),
    "strategies": (strategies, (decode, beam_search)),
    "tree": (beam_tree, (beam_search,)),
    "alignment": (alignment, (word_alignment,)),
}
ANSWERS = {"blanks": (fill_blanks, (fillings,)), "class": (classify, (leave_one_out, Classifier.forward))}

answer = kind_of_answer()
marks = marked_position if answer == "blanks" else None
with page("decoding", needs=needed, strip=answer != "text", marks=marks) as p:
    if answer == "text":  # only the chosen section is computed
        section = chosen_section(p.text, sections_of(p), key="decoding_section", label_visibility="collapsed")
        show, sources = SECTIONS[section]
        if section == "step":
            follow_typed_text(p)
        say_uncertain(p)
    else:
        show, sources = ANSWERS[answer]
    show(p)
    show_source(*sources)
