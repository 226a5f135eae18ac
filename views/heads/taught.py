"""What the Heads page says of a head that was taught what it does."""

from transformer.files.model_card import taught_head
from ui.shell.page import Page


def taught_note(p: Page) -> str | None:
    """``None`` where no head of this kind was taught."""
    place = taught_head(p.checkpoint.card) if p.focus.kind == "cross" else None
    return p.text["taught"].format(layer=place[0], head=place[1]) if place else None
