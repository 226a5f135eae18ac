"""Decoding: how does the model choose words?"""

from ui.page.page import page
from ui.sections.uncertain_output import say_uncertain
from views.decoding import decoding_sections as sections
from views.decoding.step_by_step import step_by_step

SECTIONS = {
    "step": step_by_step,
    "strategies": sections.strategies,
    "tree": sections.tree,
    "alignment": sections.alignment,
}
ANSWERS = {"blanks": sections.fill_in, "class": sections.classify}

answer = sections.kind_of_answer()
marks = sections.marked_position if answer == "blanks" else None
with page("decoding", needs=sections.needed, strip=answer != "text", marks=marks) as p:
    if answer == "text":  # only the chosen section is computed
        look = {"label_visibility": "collapsed", "wrap": True}
        section = p.option("section", sections.offered(p), key="decoding_section", **look)
        if section == "step":
            sections.follow_typed_text(p)
        say_uncertain(p)
        SECTIONS[section](p)
    else:
        ANSWERS[answer](p)
