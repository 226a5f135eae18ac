"""GNU gettext catalogues: ``ui/words/<language>/messages.po`` says what figures, tables and errors say in English,
and ``browser.po`` what the scripts of the browser say.

English needs none. What a catalogue lacks, and what would not fit (other ``{placeholders}``), stays English.
"""

import logging
from collections.abc import Mapping
from functools import lru_cache

from charts.toolkit import numbers, words
from transformer.errors import InputError
from transformer.text.message import Message, message_of
from ui.server.limits import without_folders
from ui.words import texts
from ui.words.translations import ENGLISH, changed, placeholders

MESSAGES, BROWSER = "messages", "browser"  # gettext's domains: what Python says, and what is sent to the scripts
_LOG = logging.getLogger(__name__)


def said(problem: Exception | str) -> str:
    """The sentence of an error or a note of ``transformer/``, in the language of this session.

    What is not about a typed text names no folder of a public server.
    """
    sentence = message_of(problem) if isinstance(problem, Exception) else problem
    words = sentence.translated(gettext, numbers.number) if isinstance(sentence, Message) else sentence
    return without_folders(words) if isinstance(problem, Exception) and not isinstance(problem, InputError) else words


def gettext(template: str) -> str:
    """A template of the library in the language of this session."""
    return catalogue(texts.language()).get(template, template)


def browser_words() -> Mapping[str, str]:
    """What the scripts in the browser say, from English to the language of this session; nothing in English."""
    return catalogue(texts.language(), BROWSER)


def catalogue(language: str, domain: str = MESSAGES) -> Mapping[str, str]:
    """English template → the same in ``language``."""
    path = f"{texts.ROOT}/ui/words/{language}/{domain}.po"
    if language == ENGLISH or (when := changed(path)) is None:
        return {}
    return _read(path, when)


@lru_cache(maxsize=32)
def _read(path: str, _changed: int) -> dict[str, str]:
    import polib  # not before somebody asks for another language

    try:
        entries = polib.pofile(path, encoding="utf-8").translated_entries()
    except (OSError, UnicodeDecodeError) as error:  # polib says OSError for wrong syntax
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
