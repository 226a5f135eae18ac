"""GNU gettext catalogues: translations of texts in figures, tables, notes and browser scripts.

``ui/words/<language>/messages.po`` translates what Python writes, ``browser.po`` what the scripts of the browser write.
English needs none. What a catalogue lacks, or what would not fit (other ``{placeholders}``), stays English.
"""

import logging
from collections.abc import Mapping
from functools import lru_cache

from charts.toolkit import numbers, words
from transformer.errors import InputError, text_of
from transformer.text.message import Message
from ui.server.limits import without_folders
from ui.words import texts
from ui.words.translations import ENGLISH, changed_at, placeholders

MESSAGES, BROWSER = "messages", "browser"  # gettext's domains: for Python, and for the scripts
_LOG = logging.getLogger(__name__)


def translate(problem: Exception | str) -> str:
    """Return a note of ``transformer/`` in the language of this session, or an error, which is English.

    Unless it is about a typed text, it names no folder of a public server.
    """
    sentence = text_of(problem) if isinstance(problem, Exception) else problem
    words = sentence.translated(gettext, numbers.number) if isinstance(sentence, Message) else sentence
    return without_folders(words) if isinstance(problem, Exception) and not isinstance(problem, InputError) else words


def gettext(template: str) -> str:
    """Return a template of the library in the language of this session."""
    return catalogue(texts.language()).get(template, template)


def browser_words() -> Mapping[str, str]:
    """Return the words of the browser scripts, from English to this session's language; none in English."""
    return catalogue(texts.language(), BROWSER)


def catalogue(language: str, domain: str = MESSAGES) -> Mapping[str, str]:
    """Return English template → translation for ``language``."""
    path = f"{texts.ROOT}/ui/words/{language}/{domain}.po"
    if language == ENGLISH or (when := changed_at(path)) is None:
        return {}
    return _read(path, when)


@lru_cache(maxsize=32)
def _read(path: str, _changed: int) -> dict[str, str]:
    import polib  # only if another language is used

    try:
        entries = polib.pofile(path, encoding="utf-8").translated_entries()
    except (OSError, UnicodeDecodeError) as error:  # polib raises OSError for wrong syntax
        _LOG.warning("%s is left out: %s", path, error)
        return {}
    fitting = {}
    for entry in entries:
        if placeholders(entry.msgid) == placeholders(entry.msgstr):
            fitting[entry.msgid] = entry.msgstr
        else:
            _LOG.warning("%s does not fit the English text and is left out: %r", path, entry.msgstr)
    return fitting


words.translate_by(gettext)
numbers.write_for(texts.language)
