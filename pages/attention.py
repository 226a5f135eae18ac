"""Attention: which tokens attend to which, and why? One head from queries and keys to its output."""

from transformer.attention import MultiHeadAttention
from ui.page.page import page
from ui.shell.events import lead_to
from views.attention import attention_sections as sections
from views.attention.beyond import fires, general
from views.attention.long_text import show_long_text
from views.attention.one_cell import arithmetic, more_about_cell
from views.attention.reading import reading
from views.attention.steps import steps
from views.attention.trust import trust

OF_TEXTS = {"path": steps, "reading": reading, "trust": trust, "general": general, "fires": fires}
OF_IMAGES = {"picture": sections.on_picture, "path": steps, "trust": trust}
NEEDS = ("stack", "kind", "layer", "head", "token")

with page(
    "attention",
    needs=NEEDS,
    begins=sections.begins,
    only=sections.stack,
    predicts=sections.names_predictions,
) as p:
    if p.reads_long_text:
        show_long_text(p)
        p.finish()
    shown = sections.choose(p)
    sections.show_head(p, shown, arithmetic)
    is_recorded = sections.queries(p) in p.trace
    if is_recorded:
        sections.rewrite(p)
        if shown.cell:
            more_about_cell(p, shown)
        lead_to(sections.ARITHMETIC)
    offered = (OF_IMAGES if shown.view.key.patches else OF_TEXTS) if is_recorded else {"reading": reading}
    offered[p.option("section", list(offered), key="attention_section", wrap=True)](p, shown)
    p.code(MultiHeadAttention)
    if not is_recorded:
        p.trace[sections.queries(p)]  # says what the model does not expose
