"""What a tokenizer of another project consists of, whatever files it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from transformer.text.special_ids import SpecialIds


@dataclass(frozen=True)
class Parts:
    """What a folder gives. ``ids``: every entry. ``encode`` and ``words``: of a text without special tokens.

    ``special_names``: entries that stand for no text. ``mask``: as it is typed. ``size``: how many ids the model has.
    """

    file: Path
    kind: str
    alphabet: str
    ids: dict[str, int]
    special: SpecialIds
    special_names: frozenset[str]
    size: int
    encode: Callable[[str], list[int]]
    words: Callable[[str], list[str]]
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    answer_before: tuple[int, ...] = ()
    mask: str | None = None
    typed: frozenset[str] = frozenset()  # added tokens that are found in a text: written as typed
    space_in_front: bool = False
    encode_target: Callable[[str], list[int]] | None = None
    source_ids: dict[str, int] | None = None  # where a model reads with another vocabulary than it writes with
    merges: Callable[[], Iterable[tuple[str, str]]] = tuple
    scores: dict[str, float] = field(default_factory=dict)  # Unigram
    languages: dict[str, int] = field(default_factory=dict)
    source_language: str | None = None
    target_language: str | None = None
    speaking: Callable[[str | None, str | None], Parts] | None = None  # these parts for other languages


def vocabulary_size(config: dict, ids: dict[str, int]) -> int:
    """What the configuration says, padding of the embeddings included; else as many as there are ids."""
    inner = config.get("text_config") if isinstance(config.get("text_config"), dict) else {}
    size = config.get("vocab_size", inner.get("vocab_size"))
    return size if type(size) is int and size > 0 else max(ids.values()) + 1


def special_ids(
    named: dict[str, str],
    ids: dict[str, int],
    special: set[str],
    size: int,
    *,
    around: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    configs: tuple[dict, ...] = (),
) -> SpecialIds:
    """The jobs that the tokenizer names; what it leaves out is taken from the model's configuration, from the tokens
    ``around`` a text (before, after) and from the usual names of a mask."""
    known = {ids[name] for name in special if name in ids and ids[name] < size}

    def of(*names: str, otherwise: tuple[int | None, ...] = ()) -> int | None:
        found = [ids.get(named.get(name, "")) for name in names]
        for config in configs:
            written = config.get(f"{names[0]}_id")
            found += written if isinstance(written, list) else [written]
        return next((id for id in (*found, *otherwise) if type(id) is int and id in known), None)

    start = of("bos_token", "cls_token", otherwise=around[0])
    end = of("eos_token", "sep_token", otherwise=around[1])
    mask = of("mask_token", otherwise=tuple(ids.get(name) for name in ("[MASK]", "<mask>") if name in special))
    pad = of("pad_token")
    if pad in {start, end, mask, ids.get(named.get("unk_token", "")), *around[0], *around[1]}:
        pad = None  # nothing that a text may hold is left out of attention
    return SpecialIds(pad, start, end, mask, frozenset(known - {pad, start, end, mask}))
