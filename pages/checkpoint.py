"""Checkpoint: what is in the file?"""

from transformer.files.checkpoints import load
from ui.page.page import page
from ui.shell.choice import tabs
from ui.show.figures import show_source
from views.checkpoint import contents
from views.checkpoint.checkpoint_view_model import CheckpointViewModel
from views.checkpoint.guest_view import guest_view
from views.checkpoint.packaged_form import packaged_form
from views.checkpoint.upload_form import upload_form

SECTIONS = {
    "family": lambda p, _: guest_view(p),
    "card": contents.show_card,
    "weights": contents.show_parameters,
    "settings": contents.show_settings,
}

with page("checkpoint", strip=False) as p:
    view_model = CheckpointViewModel(p.checkpoint)
    contents.show_sizes(p, view_model)
    contents.show_shares(p, view_model)
    packaged_form(p)
    upload_form(p)
    names = [name for name in SECTIONS if name != "family" or p.checkpoint.is_guest]
    for name, tab in zip(names, tabs(p.text, names, key="checkpoint view"), strict=True):
        with tab:
            SECTIONS[name](p, view_model)
    show_source(type(p.checkpoint.config), load)
