"""A page of which a test uses only the texts."""

from __future__ import annotations

from ui.page.kit import Kit
from ui.words.texts import page_text


class TextsOf(Kit):
    """The texts of a page, filled in as the page does it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.text = name, page_text(name)
