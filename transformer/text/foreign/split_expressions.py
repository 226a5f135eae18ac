"""The regular expressions by which known tokenizers cut a text into words: no others are run on a reader's text.

An expression from elsewhere can take for ever on some text. Apart from those of known families only short ones
without groups are read, with a repetition at their end alone.
"""

import re

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = _ENGLISH + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST
LLAMA3 = _ENGLISH + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%s|\p{{N}}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = _CASED % ("", "", "")
GPT4O = _CASED % (*[r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"] * 2, "{1,3}")
QWEN3_5 = _ENGLISH + r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}" + _REST.replace(r"\p{L}", r"\p{L}\p{M}")

OUTER_SPACES = r"\A | \z"  # one space at either end: SentencePiece, after joining spaces
TYPED_SPACE = r"\A▁"

KNOWN = frozenset({GPT2, QWEN2, LLAMA3, TEKKEN, GPT4O, QWEN3_5, OUTER_SPACES, TYPED_SPACE})

_LONGEST = 40
# One character, or one of a class; \g and \k would call the expression again, && in a class is left to others
_CLASS = r"\\[sSdDwWnrt]|\\[pP]\{\^?\w+\}"
_ONE = rf"(?:{_CLASS}|\[\^?(?:{_CLASS}|\\[\[\]\\-]|[^\[\]\\&])+\]|[^\\\[\](){{}}*+?|^$])"
_REPEATED = r"(?:[*+?]|\{\d{0,2},?\d{0,2}\})?"
_ALTERNATIVE = rf"(?:{_ONE}\??)?{_ONE}*{_REPEATED}"
_HARMLESS = re.compile(rf"{_ALTERNATIVE}(?:\|{_ALTERNATIVE})*")


def is_safe(expression: object) -> bool:
    """Whether an expression of a file may be run on any text: its time grows with the length of the text alone.

    A repetition may only stand at the end of an alternative, where nothing that follows can fail and make it try again.
    """
    if not isinstance(expression, str):
        return False
    if expression in KNOWN or expression in {f"(?:{known})" for known in KNOWN}:
        return True
    return 0 < len(expression) <= _LONGEST and _HARMLESS.fullmatch(expression) is not None
