"""What a ``tokenizer.json`` from elsewhere may hold, checked before the tokenizers library builds anything from it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import isfinite
from os.path import commonprefix
from pathlib import Path

from transformer.errors import CheckpointError
from transformer.text.foreign.files import MAX_ENTRIES, MAX_MERGES, check_count, check_entries, unreadable
from transformer.text.foreign.steps import LONGEST_TEXT, check_steps
from transformer.text.message import Message

LONGEST_ENTRY = 2000  # characters; a run of spaces has some hundreds in known vocabularies

MAX_CHARACTERS = 8_000_000  # of all entries together
MAX_NODES = 1_500_000  # of the library's tree of a Unigram vocabulary, one a byte: each takes 335 bytes of memory
MAX_ADDED_CHARACTERS = 500_000  # of all added tokens together: the library looks for all at once
LONGEST_WORD = 200  # characters of a word that WordPiece cuts: its time grows with their square


def check_content(file: Path, content: dict) -> None:
    """Raises ``CheckpointError`` for models, steps and expressions that are not known, and for lying vocabularies.

    Names the type of the model and makes its merges pairs.
    """
    model = content.get("model")
    kind = _kind(model) if isinstance(model, dict) else ""
    if kind not in ("BPE", "WordPiece", "WordLevel", "Unigram"):
        raise unreadable(file, Message("its model is not BPE, WordPiece, WordLevel or Unigram"))
    model["type"] = kind
    for part in ("dropout", "end_of_word_suffix"):
        if model.get(part):
            raise unreadable(
                file,
                Message("its model has {part} {value}, which is not supported", part=part, value=repr(model[part])),
            )
    if kind == "Unigram":
        _check_scores(file, model.get("vocab"))
    else:
        check_entries(file, model.get("vocab"))
    if kind == "BPE":
        model["merges"] = _checked_merges(file, model)
    names = model["vocab"] if isinstance(model["vocab"], dict) else [name for name, _ in model["vocab"]]
    if (longest := max(map(len, names))) > LONGEST_ENTRY:
        raise unreadable(
            file,
            Message(
                "its longest entry has {count} characters; at most {most} are read",
                count=f"{longest:,}",
                most=LONGEST_ENTRY,
            ),
        )
    if (count := sum(map(len, names))) > MAX_CHARACTERS:
        raise _too_many(file, "vocabulary", count, MAX_CHARACTERS)
    if kind == "Unigram" and count > MAX_NODES // 4 and (nodes := _n_prefixes(names)) > MAX_NODES:
        raise _too_many(file, "vocabulary", nodes, MAX_NODES)
    _check_options(file, model)
    check_steps(file, content)
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or len(added) > MAX_ENTRIES:
        raise unreadable(file, Message("its added tokens are not a list, or there are too many"))


def _kind(model: dict) -> str:
    """Files of older versions do not name the type of their model."""
    if isinstance(named := model.get("type"), str):
        return named
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    return "BPE" if "merges" in model else "WordPiece"


def _check_scores(file: Path, pieces: object) -> None:
    if not isinstance(pieces, list) or not pieces:
        raise unreadable(file, Message("it contains no vocabulary"))
    check_count(file, len(pieces))
    for piece in pieces:
        if not (
            isinstance(piece, list)
            and len(piece) == 2
            and isinstance(piece[0], str)
            and isinstance(piece[1], (int, float))
            and isfinite(piece[1])
        ):
            raise unreadable(file, Message("its entry {entry} is not a piece with a score", entry=repr(piece)[:60]))


def _checked_merges(file: Path, model: dict) -> list[tuple[str, str]]:
    """The merges as pairs. The library does not refuse a wrong one, it panics."""
    entries, merges = model["vocab"], model.get("merges", [])
    if not isinstance(merges, list):
        raise unreadable(file, Message("its model lacks vocab or merges"))
    if len(merges) > MAX_MERGES:
        raise unreadable(file, Message("it has more than {most} merges", most=f"{MAX_MERGES:,}"))
    pairs = []
    for merge in merges:
        try:
            left, right = pair = tuple(merge.split(" ") if isinstance(merge, str) else merge)
            whole = left in entries and right in entries and left + right in entries
        except (TypeError, ValueError):
            whole = False
        if not whole:
            merge = repr(str(merge)[:40])
            raise unreadable(file, Message("its merge {merge} does not join two entries to a third", merge=merge))
        pairs.append(pair)
    return pairs


def check_added(file: Path, tokens: Iterable[str]) -> None:
    """Raises ``CheckpointError`` for added tokens that are too many characters to be looked for in a text."""
    if (count := sum(map(len, tokens))) > MAX_ADDED_CHARACTERS:
        raise _too_many(file, "added_tokens", count, MAX_ADDED_CHARACTERS)


def _n_prefixes(pieces: list[str]) -> int:
    """How many different beginnings the pieces have, in bytes."""
    ordered = sorted(piece.encode("utf-8", errors="replace") for piece in pieces)
    return sum(len(piece) - len(commonprefix((before, piece))) for before, piece in pairwise((b"", *ordered)))  # noqa: RUF071 (no paths)


def _check_options(file: Path, model: dict) -> None:
    for name in ("continuing_subword_prefix", "unk_token"):
        if len(str(model.get(name) or "")) > LONGEST_TEXT:
            raise unreadable(file, Message("its {name} has more than {most} characters", name=name, most=LONGEST_TEXT))
    longest = model.get("max_input_chars_per_word", 0)
    if type(longest) is not int or not 0 <= longest <= LONGEST_WORD:
        what = {"name": "max_input_chars_per_word", "value": repr(longest)[:80], "most": LONGEST_WORD}
        raise unreadable(file, Message("its {name} is {value}; integers up to {most} are supported", **what))


def _too_many(file: Path, part: str, count: int, most: int) -> CheckpointError:
    what = {"part": part, "count": f"{count:,}", "most": f"{most:,}"}
    return unreadable(file, Message("its {part} has {count} characters in all; at most {most} are read", **what))
