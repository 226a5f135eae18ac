"""Texts of figures in the reader's language: English in a notebook, the session's language in the app.

A text is marked where it is written, as in GNU gettext: ``_("layer {layer}", layer=3)``.
"""

from collections.abc import Callable

from transformer.text.message import Message

_gettext: Callable[[str], str] = str


def translate_by(gettext: Callable[[str], str]) -> None:
    """Set the translation to ``gettext(template)``.

    It must determine the language at every call: one process serves many sessions, and a figure is made in the language
    of the session that its thread serves.
    """
    global _gettext
    _gettext = gettext


def _(template: str, /, **values: object) -> str:
    """Return ``template`` in the reader's language, with ``values`` filled in."""
    if isinstance(template, Message):
        return template.translated(_gettext)
    translated = _gettext(template)
    return translated.format(**values) if values else translated


def localize(text: str) -> str:
    """Return the library's name of a location in the reader's language; a token stays as it is."""
    return _(text) if isinstance(text, Message) else text
