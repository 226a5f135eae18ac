"""What a normaliser and a pre-tokenizer from elsewhere may do to a text: known steps only, and only so much more text.

A step that makes two characters of one doubles a text; thirty of them in a row fill any memory. So every step has a
factor, the most characters that it makes of one, and their product is bounded. A long text that grows by as much as
that still fills gigabytes: what is made of one text is bounded, too.
"""

from __future__ import annotations

import binascii
import unicodedata
from base64 import b64decode
from collections.abc import Callable, Iterable
from math import ceil, prod
from pathlib import Path
from typing import TypeVar

import numpy as np

from transformer.errors import InputError
from transformer.text.foreign.files import unreadable
from transformer.text.foreign.split_expressions import is_safe
from transformer.text.message import Message

MOST_STEPS = 32
MAX_GROWTH = 1000  # ALBERT's steps have 648, the most of known files
LONGEST_TEXT = 64  # characters that one step puts into a text, or looks for
LARGEST_TRIE = 2**20  # bytes; known ones have a quarter of it
LONGEST_RESULT = 200_000  # characters that the steps make of a text; the library needs up to 350 bytes for each
_PART = LONGEST_RESULT // MAX_GROWTH  # characters of which nothing longer than that can come

Cut = TypeVar("Cut")

# Name of a step → the most characters that it makes of one; of those with a text of their own see ``_growth``
_STEPS = {
    "normalizer": {
        **dict.fromkeys(("Lowercase", "Nmt", "Precompiled", "Prepend", "Replace", "Sequence", "Strip"), 1),
        **{"StripAccents": 1, "BertNormalizer": 3, "ByteLevel": 4, "NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18},
    },
    "pre_tokenizer": {
        **dict.fromkeys(("BertPreTokenizer", "CharDelimiterSplit", "Digits", "Punctuation", "Sequence", "Split"), 1),
        **{"UnicodeScripts": 1, "Whitespace": 1, "WhitespaceSplit": 1, "Metaspace": 2, "ByteLevel": 4},
    },
}
_NORMAL_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_INNER = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}


def steps_of(content: dict, part: str) -> list:
    """The steps of ``normalizer``, ``pre_tokenizer`` … in order, without the sequences around them."""
    return [step for step, inner in _with_sequences(content, part) if not inner]


def check_steps(file: Path, content: dict) -> None:
    """Raises ``CheckpointError`` for steps and expressions that are not known, and for steps that lengthen a text."""
    growth = 1
    for part in _STEPS:
        found = _with_sequences(content, part)
        if len(found) > MOST_STEPS:
            what = {"part": part, "count": f"{len(found):,}", "most": MOST_STEPS}
            raise unreadable(file, Message("its {part} has {count} steps; at most {most} are run", **what))
        steps = [step for step, inner in found if not inner]
        forms = [step.get("type") for step in steps if isinstance(step, dict) and step.get("type") in _NORMAL_FORMS]
        for step in steps:
            _check_step(file, part, step)
        # What is in a normal form stays as it is: of several, the longest counts.
        factors = [_growth(file, part, step) for step in steps if step["type"] not in _NORMAL_FORMS]
        growth *= prod(factors) * max((_STEPS[part][form] for form in forms), default=1)
    if growth > MAX_GROWTH:
        what = {"count": f"{growth:,}", "most": f"{MAX_GROWTH:,}"}
        raise unreadable(
            file, Message("its steps can make a text {count} times as long; at most {most} times is run", **what)
        )


def bounded(words: Callable[[str], Iterable[str]], cut: Callable[[str], Cut]) -> Callable[[str], Cut]:
    """``cut`` for the texts that ``words``, the steps, do not make longer than ``LONGEST_RESULT`` characters.

    A text that they leave as it is may be longer. Counted part by part, so that nothing long is made before it is
    refused. ``cut`` raises ``InputError`` for the others.
    """

    def checked(text: str) -> Cut:
        count, most = 0, max(LONGEST_RESULT, len(text))
        for start in range(0, len(text), _PART) if len(text) > _PART else ():
            count += sum(map(len, words(text[start : start + _PART])))
            if count > most:
                raise InputError(
                    "the tokenizer turns a text of {length} characters into more than {most}, the most that it may cut "
                    "into tokens. Take a shorter text, or another tokenizer.",
                    most=f"{most:,}",
                    length=f"{len(text):,}",
                )
        return cut(text)

    return checked


def check_charsmap(file: Path, table: bytes) -> int:
    """The most characters that a SentencePiece table puts in place of one.

    The table (``precompiled_charsmap``): the size of a trie in four bytes, the trie, and the texts that it points to,
    each ended by a zero byte. Raises ``CheckpointError`` for one that is broken, leads out of itself, or puts a long
    text somewhere.
    """
    start = 4 + int.from_bytes(table[:4], "little")
    if len(table) < 4 or start > len(table) or (start - 4) % 4:
        raise unreadable(file, Message("its table of characters is incomplete"))
    if start - 4 > LARGEST_TRIE or not _stays_inside(np.frombuffer(table[4:start], dtype="<u4"), table[start:]):
        raise unreadable(file, Message("its table of characters leads out of itself"))
    texts = (text.decode("utf-8", errors="replace") for text in table[start:].split(b"\0"))
    longest = max(map(_expanded, texts), default=0)
    if longest > LONGEST_TEXT:
        raise _too_long(file, "normalizer", longest)
    return max(1, longest)


def _stays_inside(trie: np.ndarray, texts: bytes) -> bool:
    """Whether no walk through a double-array trie (Aoe 1989) leaves it or its texts, whatever text is looked up.

    A number of the trie holds a byte (bits 0–7), whether a text ends here (bit 8), and an offset (from bit 10, times
    256 where bit 9 is set); the child for the byte b lies at place XOR offset XOR b if that number holds b. The
    tokenizers library looks without asking, and what it then raises is no ``Exception``. Circles do no harm: every
    place is visited once.
    """
    if not len(trie):
        return False
    offsets = (trie >> 10).astype(np.int64) << ((trie & 512) >> 6).astype(np.int64)
    # Read backwards, each number that holds a byte is the child of one place only: all children, sorted by that place.
    children = np.flatnonzero(trie < 0x80000000)
    parents = children ^ (trie[children] & 0xFF)
    order = np.argsort(parents, kind="stable")
    children, parents = children[order], parents[order]
    visited = np.zeros(len(trie), dtype=bool)
    now = np.array([0])
    while len(now):
        places = now ^ offsets[now]
        if (places | 255).max() >= len(trie):
            return False
        ends = trie[places[(trie[now] >> 8 & 1) == 1]] & 0x7FFFFFFF
        if any(end > len(texts) or (texts[end : end + 1] and texts[end] & 0xC0 == 0x80) for end in ends.tolist()):
            return False  # behind the last text, or in the middle of a character
        places = np.unique(places)
        bounds = (np.searchsorted(parents, places, side=side).tolist() for side in ("left", "right"))
        now = np.concatenate([children[first:last] for first, last in zip(*bounds, strict=True)])
        now = now[~visited[now]]
        visited[now] = True
    return True


def _with_sequences(content: dict, part: str) -> list[tuple[object, bool]]:
    """Every step and whether it is a sequence, whose steps follow."""
    found, waiting = [], [content.get(part)]
    while waiting:
        step = waiting.pop()
        inner = step.get(_INNER[part]) if isinstance(step, dict) else None
        if isinstance(inner, list):
            waiting.extend(reversed(inner))
        if step is not None:
            found.append((step, isinstance(inner, list)))
    return found


def _check_step(file: Path, part: str, step: object) -> None:
    named = step.get("type") if isinstance(step, dict) else step
    if not isinstance(step, dict) or not isinstance(named, str) or named not in _STEPS[part]:
        what = {"part": part, "step": repr(named)[:80]}
        raise unreadable(file, Message("its {part} has the step {step}, which is not known", **what))
    pattern = step.get("pattern")
    if isinstance(pattern, dict) and "Regex" in pattern and not is_safe(pattern["Regex"]):
        raise unreadable(
            file,
            Message(
                "its {part} has the expression {expression}; only those of known families and short ones without "
                "groups are run",
                part=part,
                expression=repr(pattern["Regex"])[:80],
            ),
        )
    if isinstance(pattern, dict) and "String" in pattern and not pattern["String"]:
        raise unreadable(file, Message("its {part} looks for an empty text", part=part))


def _growth(file: Path, part: str, step: dict) -> int:
    """The most characters that a step makes of one."""
    pattern = step.get("pattern")
    looked_for = pattern.get("String") if isinstance(pattern, dict) else None
    put = step.get({"Replace": "content", "Prepend": "prepend"}.get(step["type"], ""), "")
    for text in (looked_for, put):
        if isinstance(text, str) and (length := _expanded(text)) > LONGEST_TEXT:
            raise _too_long(file, part, length)
    length = _expanded(put) if isinstance(put, str) else 0
    match step["type"]:
        case "Replace" if isinstance(looked_for, str):
            return max(1, ceil(length / len(looked_for)))
        case "Replace" | "Prepend":  # an expression may find the empty text between any two characters
            return 1 + length
        case "Precompiled":
            try:
                return check_charsmap(file, b64decode(step.get("precompiled_charsmap") or "", validate=True))
            except (binascii.Error, TypeError, ValueError) as error:
                if isinstance(error, ValueError) and not isinstance(error, binascii.Error):
                    raise
                raise unreadable(file, Message("its table of characters is incomplete")) from error
    return _STEPS[part][step["type"]]


def _expanded(text: str) -> int:
    """The length of a text in its longest normal form: a later step may bring it there."""
    return len(unicodedata.normalize("NFKD", text))


def _too_long(file: Path, part: str, length: int) -> Exception:
    what = {"part": part, "count": f"{length:,}", "most": LONGEST_TEXT}
    return unreadable(file, Message("its {part} has a text of {count} characters; at most {most} are read", **what))
