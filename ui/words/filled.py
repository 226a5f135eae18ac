"""Texts with values put in, written as the text says: ``{share:%}``, ``{token:word}``.

A value that is put into Markdown is escaped unless code of this app made it ``Marked``: neither a translator nor a
forgotten call can let a reader's text become markup.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import signed, three_digits
from ui.words.texts import as_plain, common_table, count_text, in_code, label_in_words, quoted_word


def _percent(share: float) -> str:
    """Format a share as a whole percent, but never as all of it where something is missing."""
    return percent(share, decimals=int(0.995 <= share < 0.9995))


_FIELD = re.compile(r"\$[^$]*\$|\{([a-z_]+)(?::([a-z%+0-9]+))?\}")  # nothing within $LaTeX$
_NUMBERS: Mapping[str, Callable[[Any], str]] = {"%": _percent, "3": three_digits, "+": signed, "n": whole}
_LABELS: Mapping[str, Callable[[str], str]] = {"word": quoted_word, "token": label_in_words}  # of tokens


class Marked(str):
    """Markdown that this app has written; any other string is escaped when it is put into a text."""


def filled(text: str, values: Mapping[str, Any], *, markdown: bool) -> str:
    """Return ``text`` with its fields filled in.

    A field names a value and the way it is written: ``%``, ``3`` (significant digits), ``+`` (with its sign) and ``n``
    (a count) for numbers, which are counts or have three digits by default; ``token`` and ``word`` for a token's label;
    ``code`` for one text or several; anything else is a noun of ``[count]``, "3 tokens".

    Raises:
        KeyError: For a field without a value, or an unknown way of writing.
    """

    def written(found: re.Match[str]) -> str:
        name, way = found.groups()
        if not name:
            return found[0]
        value = values[name]
        if way == "code":
            return code(value) if markdown else value if isinstance(value, str) else " ".join(value)
        if isinstance(value, Real) and not isinstance(value, bool):  # NumPy's numbers, too
            way = way or ("n" if isinstance(value, Integral) else "3")
            return _NUMBERS[way](value) if way in _NUMBERS else count_text(int(value), _singular(way))
        plain = _LABELS[way](value) if way else str(value)
        return as_plain(plain) if markdown and not isinstance(value, Marked) else plain

    return _FIELD.sub(written, text)


def code(texts: str | Iterable[str]) -> Marked:
    """Return one text, or several with spaces between them, as Markdown's code."""
    return Marked(" ".join(f"`{in_code(text)}`" for text in ([texts] if isinstance(texts, str) else texts)))


def listed(parts: Iterable[str], between: str = ", ") -> Marked:
    """Return several texts as one, each escaped unless it is ``Marked``."""
    return Marked(between.join(part if isinstance(part, Marked) else as_plain(part) for part in parts))


def _singular(noun: str) -> str:
    if noun not in common_table("count") or not noun.endswith("s"):
        raise KeyError(f"a number is written {', '.join(_NUMBERS)} or as a plural of [count], not {noun!r}")
    return noun.removesuffix("s")
