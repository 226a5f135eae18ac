"""Feed-forward: what happens inside a token?"""

from ui.page.page import page
from views.feed_forward import feed_forward_sections as sections

SECTIONS = {
    "token": sections.one_token,
    "strongest": sections.strongest,
    "words": sections.words_of_units,
    "sentence": sections.all_tokens,
    "fires": sections.fires,
}

with page("feed_forward", needs=sections.needs, begins=sections.begins, only=sections.only_stack) as p:
    unit = sections.choose_one_unit(p)
    sections.one_unit(p, unit)
    SECTIONS[p.option("tab", list(SECTIONS), key="feed-forward view", wrap=True)](p, unit)
    sections.layer_formula(p, unit)
    p.code(type(p.checkpoint.model.get_submodule(unit.module)))
