"""What a ``tokenizer.json`` from elsewhere may hold, checked before the tokenizers library builds anything from it."""

from __future__ import annotations

from pathlib import Path

from transformer.text.foreign_files import MOST_ENTRIES, check_count, check_entries, unreadable
from transformer.text.message import Message
from transformer.text.split_expressions import is_safe

LONGEST_ENTRY = 2000  # characters; a run of spaces has some hundreds in known vocabularies

_STEPS = {
    "normalizer": {"BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt"}
    | {"Precompiled", "Prepend", "Replace", "Sequence", "Strip", "StripAccents"},
    "pre_tokenizer": {"BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "Metaspace", "Punctuation"}
    | {"Sequence", "Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit"},
}
_INNER = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}


def check_content(file: Path, content: dict) -> None:
    """Raises ``CheckpointError`` for models, steps and expressions that are not known, and for lying vocabularies.

    Names the type of the model and makes its merges pairs.
    """
    model = content.get("model")
    kind = _kind(model) if isinstance(model, dict) else ""
    if kind not in ("BPE", "WordPiece", "WordLevel", "Unigram"):
        raise unreadable(file, Message("its model is none of BPE, WordPiece, WordLevel and Unigram"))
    model["type"] = kind
    for part in ("dropout", "end_of_word_suffix"):
        if model.get(part):
            raise unreadable(
                file, Message("its model has {part} {value}, which is not read", part=part, value=repr(model[part]))
            )
    if kind == "Unigram":
        _check_scores(file, model.get("vocab"))
    else:
        check_entries(file, model.get("vocab"))
    if kind == "BPE":
        model["merges"] = _checked_merges(file, model)
    names = model["vocab"] if isinstance(model["vocab"], dict) else (name for name, _ in model["vocab"])
    if (longest := max(map(len, names))) > LONGEST_ENTRY:
        raise unreadable(
            file,
            Message(
                "its longest entry has {count} characters; at most {most} are read",
                count=f"{longest:,}",
                most=LONGEST_ENTRY,
            ),
        )
    for part in _STEPS:
        for step in steps_of(content, part):
            _check_step(file, part, step)
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or len(added) > MOST_ENTRIES:
        raise unreadable(file, Message("its added tokens are no list of a bearable length"))


def _kind(model: dict) -> str:
    """Files of older versions do not name the type of their model."""
    if isinstance(named := model.get("type"), str):
        return named
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    return "BPE" if "merges" in model else "WordPiece"


def steps_of(content: dict, part: str) -> list:
    """The steps of ``normalizer``, ``pre_tokenizer`` … in order, without the sequences around them."""
    found, waiting = [], [content.get(part)]
    while waiting:
        step = waiting.pop(0)
        inner = step.get(_INNER[part]) if isinstance(step, dict) else None
        if isinstance(inner, list):
            waiting[:0] = inner
        elif step is not None:
            found.append(step)
    return found


def _check_step(file: Path, part: str, step: object) -> None:
    named = step.get("type") if isinstance(step, dict) else step
    if named not in _STEPS[part]:
        raise unreadable(
            file, Message("its {part} has the step {step}, which is not known", part=part, step=repr(named))
        )
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


def _check_scores(file: Path, pieces: object) -> None:
    if not isinstance(pieces, list) or not pieces:
        raise unreadable(file, Message("it holds no vocabulary"))
    check_count(file, len(pieces))
    for piece in pieces:
        if not (
            isinstance(piece, list)
            and len(piece) == 2
            and isinstance(piece[0], str)
            and isinstance(piece[1], (int, float))
        ):
            raise unreadable(file, Message("its entry {entry} is no piece with a score", entry=repr(piece)[:60]))


def _checked_merges(file: Path, model: dict) -> list[tuple[str, str]]:
    """The merges as pairs. The library does not refuse a wrong one, it panics."""
    entries, merges = model["vocab"], model.get("merges", [])
    if not isinstance(merges, list):
        raise unreadable(file, Message("its model lacks vocab or merges"))
    if len(merges) > 4 * MOST_ENTRIES:  # SentencePiece's: every way to cut a piece into two is a merge
        raise unreadable(file, Message("it has {count} merges", count=f"{len(merges):,}"))
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
