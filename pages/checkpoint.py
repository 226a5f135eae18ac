"""Checkpoint: what is in the file?"""

from transformer.files.checkpoints import load
from ui.page.page import page
from views.checkpoint import checkpoint_sections as sections

SECTIONS = {
    "family": sections.family,
    "card": sections.card,
    "weights": sections.weights,
    "settings": sections.settings,
}

with page("checkpoint", strip=False) as p:
    sections.sizes(p)
    sections.shares(p)
    sections.packaged_form(p)
    sections.upload_form(p)
    names = [name for name in SECTIONS if name != "family" or p.checkpoint.is_guest]
    SECTIONS[p.option("view", names, key="checkpoint view", label_visibility="collapsed")](p)
    computed_by = p.checkpoint.model.classes if p.checkpoint.is_guest else ()
    p.code(*computed_by, type(p.checkpoint.config), load)
