"""Decoding: how do words come out?"""

from dataclasses import replace

from transformer import decode
from transformer.attribution.leave_one_out import leave_one_out
from transformer.models import Classifier
from transformer.predictions.answer_probabilities import fillings
from transformer.predictions.word_alignment import word_alignment
from transformer.runs.beam_search import beam_search
from transformer.runs.decoding_strategies import reshape_logits
from ui.compute.loading import config_of
from ui.shell import focus as shared_focus
from ui.shell.choice import chosen_section
from ui.shell.page import Page, page
from ui.show.figures import show_source
from views.decoding import attention_choice
from views.decoding.alignment import alignment
from views.decoding.beam_tree import beam_tree
from views.decoding.encoder_answers import classify, fill_blanks, place_of
from views.decoding.step_by_step import step_by_step
from views.decoding.strategies import strategies

SECTIONS = {
    "step": (step_by_step, (decode, reshape_logits)),
    "strategies": (strategies, (decode, beam_search)),
    "tree": (beam_tree, (beam_search,)),
    "alignment": (alignment, (word_alignment,)),
}


def write(p: Page) -> None:
    """One of the sections on a text that is written; only the chosen one is computed."""
    offered = [name for name in SECTIONS if name != "alignment" or p.checkpoint.config.has_encoder]
    section = chosen_section(p.text, offered, key="decoding_section", label_visibility="collapsed")
    if section in ("strategies", "tree"):  # they draw no attention
        attention_choice.settle()
    show, sources = SECTIONS[section]
    show(p)
    show_source(*sources)


def kind_of_answer() -> str:
    """ "text", "blanks" or "class"; known before the page begins, because the page's frame depends on it."""
    try:
        config = config_of(shared_focus.current().checkpoint)
    except (OSError, ValueError):  # the frame names the problem of the checkpoint
        return "text"
    return "text" if config.has_decoder else "class" if config.n_classes else "blanks"


answer = kind_of_answer()
needs = {"text": (), "blanks": ("token",), "class": ()}[answer]
if answer != "class":
    needs = (*attention_choice.needed(), *needs)
marks = place_of if answer == "blanks" else None
with page("decoding", needs=needs, strip=answer != "text", marks=marks) as p:
    if answer == "text":
        if p.focus.stack != "decoder":  # layers are counted in the stack that writes
            p.focus = replace(p.focus, layer=min(p.focus.layer, p.checkpoint.config.n_decoder_layers - 1))
        write(p)
    elif answer == "blanks":
        fill_blanks(p)
        show_source(fillings)
    else:
        classify(p)
        show_source(leave_one_out, Classifier.forward)
