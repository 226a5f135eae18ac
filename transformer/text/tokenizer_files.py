"""What a ``tokenizer.json`` may hold, checked before the tokenizers library builds anything from it.

The library can do far more than byte-level BPE: expressions that take for ever on some text, normalisers that change
it, padding. A file from elsewhere gets none of that, and no vocabulary that would fill the memory.
"""

from __future__ import annotations

import json
from pathlib import Path

from transformer.errors import CheckpointError

MOST_BYTES = 32_000_000
MOST_ENTRIES = 200_000
LONGEST_ENTRY = 512  # characters of the byte alphabet; the longest in a trained vocabulary have about 20

_NOTHING_ELSE = ("truncation", "padding", "normalizer", "post_processor")
_PRE_TOKENIZER = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
_PLAIN_MODEL = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")


def check_tokenizer_file(path: Path) -> None:
    """Raises ``CheckpointError`` for a file that is too large, no JSON, or more than plain byte-level BPE."""
    problem = _problem(path)
    if problem:
        raise CheckpointError(f"{path} is not a tokenizer that can be read: {problem}")


def _problem(path: Path) -> str:
    """What is wrong, or nothing."""
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            return f"it has {size:,} bytes; at most {MOST_BYTES:,} are read"
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        return error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        return f"it is no valid JSON ({error})"
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict) or model.get("type") != "BPE":
        return "it holds no byte-pair encoding (model type BPE)"
    for part in _NOTHING_ELSE:
        if content.get(part) is not None:
            return f"it has a {part}; only plain byte-level BPE is read, with {part} null"
    pre_tokenizer = content.get("pre_tokenizer")
    if not isinstance(pre_tokenizer, dict) or not _PRE_TOKENIZER.items() <= pre_tokenizer.items():
        return "its pre_tokenizer is not ByteLevel without a space in front, the only one that is read"
    for part in _PLAIN_MODEL:
        if model.get(part):
            return f"its model has {part} {model[part]!r}; only plain byte-level BPE is read, without it"
    return _vocabulary_problem(model.get("vocab"), model.get("merges"))


def _vocabulary_problem(entries: object, merges: object) -> str:
    if not isinstance(entries, dict) or not isinstance(merges, list):
        return "its model lacks vocab or merges"
    if len(entries) > MOST_ENTRIES:
        return f"its vocabulary has {len(entries):,} entries; at most {MOST_ENTRIES:,} are read"
    if len(merges) > len(entries):
        return f"it has {len(merges):,} merges for {len(entries):,} entries; each merge makes one entry"
    if (longest := max(map(len, entries), default=0)) > LONGEST_ENTRY:
        return f"its longest entry has {longest:,} characters; at most {LONGEST_ENTRY} are read"
    if wrong := [id for id in entries.values() if type(id) is not int or not 0 <= id < MOST_ENTRIES]:
        return f"its vocabulary has the id {wrong[0]!r}; ids are whole numbers from 0 on"
    for merge in merges:  # the library does not refuse a wrong one, it panics
        parts = merge.split(" ") if isinstance(merge, str) else merge
        whole = isinstance(parts, list) and len(parts) == 2 and all(isinstance(part, str) for part in parts)
        if not whole or not {*parts, "".join(parts)} <= entries.keys():
            return f"its merge {str(merge)[:40]!r} does not join two entries to a third"
    return ""
