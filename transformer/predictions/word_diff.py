"""Which words of an answer are gone, which are new."""

import re
from difflib import SequenceMatcher
from typing import NamedTuple

_WORDS = re.compile(r"\s*(?:\w+(?:['’-]\w+)*['’]?|[^\w\s]+)", re.UNICODE)


class Piece(NamedTuple):
    """Neighbouring words with the same fate, "same", "removed" or "added", with the spaces that stand before them."""

    fate: str
    text: str


def word_diff(before: str, after: str) -> tuple[Piece, ...]:
    """The shortest list of pieces from which both texts can be read; words are compared, not letters.

    Punctuation marks are words of their own. Spaces are not compared.
    """
    old, new = words(before), words(after)
    pieces: list[Piece] = []
    matcher = SequenceMatcher(None, [word.strip() for word in old], [word.strip() for word in new], autojunk=False)
    for fate, i, j, k, n in matcher.get_opcodes():
        if fate == "equal":
            pieces.append(Piece("same", "".join(new[k:n])))
            continue
        if j > i:
            pieces.append(Piece("removed", "".join(old[i:j])))
        if n > k:
            pieces.append(Piece("added", "".join(new[k:n])))
    return tuple(pieces)


def words(text: str) -> list[str]:
    """Words and punctuation marks, each by itself, with the spaces before it; of other scripts, too."""
    return _WORDS.findall(text)
