"""Limits on a third-party ``config.json``, at any depth, checked before anything is built."""

from __future__ import annotations

import re
from collections.abc import Mapping

from transformer.errors import CheckpointError

_DEEPEST = 20  # objects and lists within each other; those of ``transformers`` have 6
# Names of integers that say how much is built, and the most that is accepted; the first that matches counts.
_MOST = {
    re.compile(name): most
    for name, most in {
        r"vocab": 2**25,
        r"position|n_ctx|seq_len|max_length|context_length": 2**27,
        r"(^|_)layers?$|depths?$|blocks$|stages$|(layers|blocks)_per_|num_block_repeats": 512,
        r"experts?$": 2**14,
        r"labels$|classes$": 2**17,
        r"size|dim|width|channel|d_model|d_ff|d_kv|n_embd|n_inner|heads?$|units": 2**21,
    }.items()
}


def check_config(fields: Mapping[str, object]) -> None:
    """Refuse a config with numbers larger than in any model, or one that names code or another model.

    Raises:
        CheckpointError: If a number of layers, positions or the like is too large, if ``auto_map`` is inside another
            object, if a field names a backbone, which ``transformers`` would ask a hub for, or if the fields are nested
            too deeply.
    """
    waiting: list[tuple[str, object, int]] = [("", fields, 0)]
    while waiting:
        place, value, depth = waiting.pop()
        if depth > _DEEPEST:
            raise CheckpointError(f"its fields are nested more than {_DEEPEST} deep")
        if isinstance(value, Mapping):
            for name, inner in value.items():
                _check_name(str(name), inner, place)
                waiting.append((f"{place}.{name}" if place else str(name), inner, depth + 1))
        elif isinstance(value, list | tuple):
            waiting += [(place, inner, depth + 1) for inner in value]
        elif isinstance(value, int) and (most := _most(place.rpartition(".")[2])) is not None and value > most:
            raise CheckpointError(f"{place[:200]} is {str(value)[:80]}; it must be at most {most}")


def _check_name(name: str, value: object, place: str) -> None:
    where = f"{place}.{name}"[-200:]
    if "backbone" in name and value is not None:
        raise CheckpointError(
            f"{where.lstrip('.')} is {repr(value)[:80]}: a model that is built from "
            "another one, which may lie on a hub, cannot be opened"
        )
    if name == "auto_map" and place:
        raise CheckpointError(
            f"{where} names code of its own for a part of the model; code of a checkpoint is never run"
        )


def _most(name: str) -> int | None:
    return next((most for pattern, most in _MOST.items() if pattern.search(name)), None)
