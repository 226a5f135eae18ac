"""Numbers with the signs of the reader's language: what Python writes as -1,230.5 is −1 230,5 in French.

The minus is the sign of that name, as long as a plus, no hyphen. The other signs come from Unicode's CLDR, by Babel.
Files, code and addresses keep Python's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_language: Callable[[], str] = lambda: "en"  # noqa: E731  (replaced by who knows whom a run serves)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = re.compile(r"·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


def write_for(language: Callable[[], str]) -> None:
    """Write every number for ``language()`` from now on, asked at every number: one process serves many sessions."""
    global _language
    _language = language


def number(written: str, *, language: str = "") -> str:
    """A number as Python wrote it, ``f"{value:,.3g}"`` or the like, for the reader: -1.2e-05 becomes −1.2·10⁻⁵.

    ``language``: another than the reader's, for a label that an address from somewhere else may name.
    """
    digits, _, exponent = written.partition("e")
    digits = digits.replace("-", "−")
    decimal, group = _signs(language or _language())
    if (decimal, group) != (".", ","):
        digits = digits.translate({ord("."): decimal, ord(","): group})
    return f"{digits}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}" if exponent.strip("+-").isdigit() else digits


def whole(value: int, *, language: str = "") -> str:
    """A count: 6,000 in English, 6 000 in French."""
    return number(f"{value:,}", language=language)


def percent(share: float, *, decimals: int = 0) -> str:
    """A share of 1: 43% in English, 43 % in French."""
    from babel.numbers import format_percent

    sign = format_percent(0, locale=_locale(_language()))  # "0%", or as the language puts it
    return sign.replace("0", number(f"{share * 100:.{decimals}f}"))


def in_tex(written: str) -> str:
    """A number of this module inside of LaTeX, where a comma by itself would be followed by a space."""
    written = written.replace("−", "-").replace(",", "{,}").replace("\u202f", r"\,").replace("\xa0", r"\,")
    return _POWER.sub(lambda found: rf" \cdot 10^{{{found[1].translate(_PLAIN)}}}", written)


def language_name(code: str) -> str:
    """What the reader calls a language: "French", "français"."""
    from babel import Locale

    return Locale.parse(_locale(_language())).languages.get(code, code)


def signs() -> tuple[str, str]:
    """The decimal sign and the sign between thousands."""
    return _signs(_language())


@lru_cache(maxsize=64)
def _signs(language: str) -> tuple[str, str]:
    if language == "en":
        return ".", ","
    from babel.numbers import get_decimal_symbol, get_group_symbol

    locale = _locale(language)
    return get_decimal_symbol(locale), get_group_symbol(locale)


def _locale(language: str) -> str:
    """Babel's name of a language; English where Babel does not know it."""
    from babel import Locale, UnknownLocaleError

    try:
        return str(Locale.parse(language, sep="-"))
    except (UnknownLocaleError, ValueError):
        return "en"
