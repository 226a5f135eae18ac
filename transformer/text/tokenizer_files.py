"""Checks of a ``tokenizer.json`` before the tokenizers library builds anything from it.

The library can do far more than byte-level BPE: regular expressions that take forever on some text, normalisers that
change it, padding. A third-party file gets none of that, and no vocabulary that would fill the memory.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from transformer.config import SPECIAL_TOKENS
from transformer.disk.plain_files import read_plain
from transformer.errors import CheckpointError, MessageError, text_of

MAX_BYTES = 32_000_000
MAX_ENTRIES = 200_000
MAX_LISTS, MAX_OBJECTS = 2_000_000, 100_000  # limits on lists (one per merge) and objects (one per added token)
LONGEST_ENTRY = 512  # characters of the byte alphabet; the longest in trained vocabularies have about 20

_NOTHING_ELSE = ("truncation", "padding", "normalizer", "post_processor")
_PRE_TOKENIZER = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
_DECODER = {"type", "add_prefix_space", "trim_offsets", "use_regex"}
_PLAIN_MODEL = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")


def check_tokenizer_file(path: Path) -> None:
    """Check a tokenizer file.

    Raises:
        CheckpointError: If the file is too large, not JSON, or more than plain byte-level BPE.
    """
    problem = _problem(path)
    if problem:
        raise unreadable(path, problem)


def unreadable(file: Path, problem: str) -> CheckpointError:
    """Return the error for a tokenizer file that cannot be read."""
    return CheckpointError(f"{file} is not a tokenizer that can be read: {problem}")


def _problem(path: Path) -> str:
    """Return what is wrong with the file, or ""."""
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            return f"it has {size:,} bytes; at most {MAX_BYTES:,} are read"
    except OSError as error:
        return error.strerror or str(error)
    content = _read_object(path)
    model = content.get("model")
    if not isinstance(model, dict) or model.get("type") != "BPE":
        return "it contains no byte-pair encoding (model type BPE)"
    for part in _NOTHING_ELSE:
        if content.get(part) is not None:
            return f"it has a {part}; only plain byte-level BPE is read, with {part} null"
    pre_tokenizer = content.get("pre_tokenizer")
    if not isinstance(pre_tokenizer, dict) or not _PRE_TOKENIZER.items() <= pre_tokenizer.items():
        return "its pre_tokenizer is not supported; only ByteLevel with add_prefix_space = false is"
    decoder = content.get("decoder")
    plain = isinstance(decoder, dict) and decoder.get("type") == "ByteLevel" and decoder.keys() <= _DECODER
    if decoder is not None and not plain:
        return "its decoder is not ByteLevel, the only one that is read"
    added = content.get("added_tokens")
    if not isinstance(added, list) or any(_content(token) not in SPECIAL_TOKENS for token in added):
        return f"it has added tokens besides {', '.join(SPECIAL_TOKENS)}"
    for part in _PLAIN_MODEL:
        if model.get(part):
            return f"its model has {part} {model[part]!r}; only plain byte-level BPE is read, without it"
    return _vocabulary_problem(model.get("vocab"), model.get("merges"))


def _content(token: object) -> object:
    return token.get("content") if isinstance(token, dict) else None


def _vocabulary_problem(entries: object, merges: object) -> str:
    if not isinstance(entries, dict) or not isinstance(merges, list):
        return "its model lacks vocab or merges"
    if problem := entries_problem(entries, most=MAX_ENTRIES, longest=LONGEST_ENTRY):
        return problem
    if len(merges) > len(entries):
        return f"it has {len(merges):,} merges for {len(entries):,} entries; each merge makes one entry"
    for merge in merges:  # the library panics on a wrong one instead of refusing it
        parts = merge.split(" ") if isinstance(merge, str) else merge
        whole = isinstance(parts, list) and len(parts) == 2 and all(isinstance(part, str) for part in parts)
        if not whole or not {*parts, "".join(parts)} <= entries.keys():
            return f"its merge {str(merge)[:40]!r} does not join two entries to a third"
    return ""


def entries_problem(ids: Mapping[str, object], *, most: int, longest: int) -> str:
    """Return what is wrong with the ids of a vocabulary, or "".

    It may have at most ``most`` entries, each of at most ``longest`` characters.
    """
    if len(ids) > most:
        return f"its vocabulary has {len(ids):,} entries; at most {most:,} are read"
    if (length := max(map(len, ids), default=0)) > longest:
        return f"its longest entry has {length:,} characters; at most {longest} are read"
    wrong = [id for id in ids.values() if type(id) is not int or not 0 <= id < most]
    return f"its vocabulary has the id {wrong[0]!r}; ids are integers ≥ 0" if wrong else ""


def _read_object(file: Path) -> dict:
    """Return the JSON object of a file."""
    try:
        text = read_plain(file, MAX_BYTES).decode("utf-8")
    except MessageError as error:
        raise CheckpointError(text_of(error)) from error
    except OSError as error:
        raise unreadable(file, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise unreadable(file, text_of(error)) from error
    for sign, most in (("[", MAX_LISTS), ("{", MAX_OBJECTS)):
        if (count := text.count(sign)) > most:  # creating so many objects blocks the whole server for seconds
            raise unreadable(file, f"it has {count:,} times {sign}; at most {most:,} are read")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise unreadable(file, f"it is not valid JSON ({text_of(error)})") from error
    if not isinstance(content, dict):
        raise unreadable(file, "it does not contain a JSON object")
    return content
