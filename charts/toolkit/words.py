"""What figures say, in the language of who looks at them: English in a notebook, what the app says in a session.

A text is marked where it is written, as in GNU gettext: ``_("layer {layer}", layer=3)``.
"""

from collections.abc import Callable

from transformer.text.message import Message

_gettext: Callable[[str], str] = str


def translate_by(gettext: Callable[[str], str]) -> None:
    """Say every text by ``gettext(template)`` from now on. It must ask for the language at every call: one process
    serves many sessions, and a figure is made in the language of the session that its thread serves."""
    global _gettext
    _gettext = gettext


def _(template: str, /, **values: object) -> str:
    """``template`` in the language of who looks, with ``values`` in its ``{…}``; a ``Message`` brings its own."""
    if isinstance(template, Message):
        return template.translated(_gettext)
    said = _gettext(template)
    return said.format(**values) if values else said


def in_words(text: str) -> str:
    """What the library calls a place, in the language of who looks; a token, which only looks like a word, stays."""
    return _(text) if isinstance(text, Message) else text
