"""Texts of figures, of the library and of the browser scripts in the language of this session.

``charts/words/<language>.toml`` has them; what another language lacks, or what would not fit, stays English.
"""

from collections.abc import Mapping

from charts.toolkit import numbers, words
from transformer.errors import InputError, text_of
from ui.server.limits import without_folders
from ui.words import texts
from ui.words.translations import placeholders, read_texts


def problem_text(error: Exception) -> str:
    """Return the message of an error, in English.

    Unless it is about a typed text, it names no folder of a public server.
    """
    return text_of(error) if isinstance(error, InputError) else without_folders(text_of(error))


def browser_words() -> Mapping[str, str]:
    """Return the words of the browser scripts, from English to this session's language; none in English."""
    said = _texts().get("browser", {})
    return {english: text for english, text in said.items() if placeholders(english) == placeholders(text)}


def _texts() -> words.Texts:
    return read_texts(texts.ROOT, "figures", texts.language())


words.read_from(_texts)
numbers.write_for(texts.language)
