"""Numbers in the reader's notation: Python's -1,230.5 is −1 230,5 in French.

The minus sign is U+2212, which is as wide as a plus, and not a hyphen. The other signs come from Unicode's CLDR, by
Babel. Files, code and addresses keep Python's notation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_language: Callable[[], str] = lambda: "en"  # noqa: E731  (replaced by code that knows whom a run serves)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = re.compile(r"·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


def write_for(language: Callable[[], str]) -> None:
    """Set the function that returns the language, which is called for every number."""
    global _language
    _language = language


def number(written: str, *, language: str = "") -> str:
    """Convert a number as Python formats it to the reader's notation: -1.2e-05 becomes −1.2·10⁻⁵.

    ``language`` overrides the reader's, for a label in an address from elsewhere.
    """
    digits, _, exponent = written.partition("e")
    digits = digits.replace("-", "−")
    decimal, group = _signs(language or _language())
    if (decimal, group) != (".", ","):
        digits = digits.translate({ord("."): decimal, ord(","): group})
    return f"{digits}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}" if exponent.strip("+-").isdigit() else digits


def whole(value: int, *, language: str = "") -> str:
    """Format a count: 6,000 in English, 6 000 in French."""
    return number(f"{value:,}", language=language)


def percent(share: float, *, decimals: int = 0) -> str:
    """Format a share of 1: 43% in English, 43 % in French."""
    return in_percent(number(f"{share * 100:.{decimals}f}"))


def in_percent(written: str) -> str:
    """Add the percent sign to a number of this module, as the language writes it."""
    return _zero_percent(_language()).replace("0", written)


def latex_notation(written: str) -> str:
    """Return a number of this module for LaTeX, where a plain comma would be followed by a space."""
    written = written.replace("−", "-").replace(",", "{,}").replace("\u202f", r"\,").replace("\xa0", r"\,")
    return _POWER.sub(lambda found: rf" \cdot 10^{{{found[1].translate(_PLAIN)}}}", written)


def language_name(code: str) -> str:
    """Return the reader's name of a language: "French", "français"."""
    from babel import Locale

    return Locale.parse(_locale(_language())).languages.get(code, code)


def signs() -> tuple[str, str]:
    """Return the decimal sign and the thousands separator."""
    return _signs(_language())


@lru_cache(maxsize=64)
def _signs(language: str) -> tuple[str, str]:
    if language == "en":
        return ".", ","
    from babel.numbers import get_decimal_symbol, get_group_symbol

    locale = _locale(language)
    return get_decimal_symbol(locale), get_group_symbol(locale)


@lru_cache(maxsize=64)
def _zero_percent(language: str) -> str:
    from babel.numbers import format_percent

    return format_percent(0, locale=_locale(language))


def _locale(language: str) -> str:
    """Return Babel's name of a language; English if Babel does not know it."""
    from babel import Locale, UnknownLocaleError

    try:
        return str(Locale.parse(language, sep="-"))
    except (UnknownLocaleError, ValueError):
        return "en"
