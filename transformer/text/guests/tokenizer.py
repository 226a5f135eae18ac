"""A third-party tokenizer with the methods of this project's own.

Ids equal those of ``AutoTokenizer.from_pretrained(folder)(text).input_ids``, except that typed special tokens stay
text; only the mask is recognised. The libraries run in a process of their own (``connection.py``).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from transformer.errors import CheckpointError
from transformer.text.guests.connection import PROCESS_BYTES, Connection
from transformer.text.guests.files import check_files, check_ids
from transformer.text.guests.reader import HIDDEN
from transformer.text.piece_bytes import BYTES_OF
from transformer.text.prompt import Prompt, refusal
from transformer.text.special_ids import SpecialIds
from transformer.text.tokenizer import BLANK, Tokenizer
from transformer.text.tokens import TokenSequence, visible

_NO_TEXT = re.compile(f"[\ud800-\udfff{HIDDEN}]")
_ANCHORS = ("\n", ".", "x")
_AT_ONCE = 500  # texts per request


def open_tokenizer(folder: Path, *, config: dict, generation: dict) -> GuestTokenizer:
    """Open the tokenizer of a folder.

    Args:
        folder: The folder.
        config: Content of ``config.json``.
        generation: Content of ``generation_config.json``; {} without one.

    Raises:
        CheckpointError: If a file is too large, broken, or of an unknown kind.
    """
    if folder.is_dir():
        check_files(folder)
    return GuestTokenizer(Connection(folder), config, generation)


class GuestTokenizer(Tokenizer):
    """Conversion between text and ids of a third-party vocabulary.

    Attributes:
        before: Ids before a text that the model reads.
        after: Ids after it.
        answer_before: Ids before an output; the first decoder token comes from the model's config.
        special_names: Entries that stand for no text.
        typed: Added tokens that are recognised in a text.
    """

    n_bytes = PROCESS_BYTES  # from which ``ui.compute.store`` derives a limit on their number

    def __init__(self, connection: Connection, config: dict, generation: dict) -> None:
        self._connection = connection
        found = connection.description
        self.kind, self.alphabet = found["kind"], found["alphabet"]
        self._ids: dict[str, int] = check_ids(connection.folder, found["ids"])
        self._source_ids: dict[str, int] | None = found.get("source_ids")
        self._size = _vocabulary_size(config, self._ids, separate=self._source_ids is not None)
        self.special_names, self.typed = frozenset(found["special"]), frozenset(found["typed"])
        self.mask, self.space_in_front = found["mask"], found["space_in_front"]
        self.has_template = bool(found.get("template"))
        self.languages = {name: id for name, id in found["languages"].items() if id < self._size}
        self._put_around(found)
        self.special = self._special_ids(found["named"], (config, generation))
        highest = max((id for name, id in self._ids.items() if name not in self.special_names), default=0)
        if highest >= self._size:
            raise CheckpointError(
                f"the tokenizer gives ids up to {highest}, but config.json says vocab_size {self._size}"
            )

    def _put_around(self, found: dict) -> None:
        self.before, self.after = tuple(found["before"]), tuple(found["after"])
        self.answer_before = tuple(found["answer_before"])
        spoken = (found["source_language"], found["target_language"])
        self.source_language, self.target_language = (name if name in self.languages else None for name in spoken)
        if beyond := [id for id in (*self.before, *self.after, *self.answer_before) if id >= self._size]:
            raise CheckpointError(
                f"the tokenizer puts the id {beyond[0]} around a text, but config.json says vocab_size {self._size}"
            )

    def _special_ids(self, named: dict[str, str], configs: tuple[dict, ...]) -> SpecialIds:
        """Return the special tokens by role; the config and the tokens around a text supply missing ones."""
        ids = self._ids
        known = {ids[name] for name in self.special_names if name in ids and ids[name] < self._size}

        def of(*names: str, otherwise: tuple[int, ...] = ()) -> int | None:
            found = [ids.get(named.get(name, "")) for name in names]
            for config in configs:
                written = config.get(f"{names[0]}_id")
                found += written if isinstance(written, list) else [written]
            return next((id for id in (*found, *otherwise) if type(id) is int and id in known), None)

        start = of("bos_token", "cls_token", otherwise=self.before)
        end = of("eos_token", "sep_token", otherwise=self.after)
        mask = ids.get(self.mask) if ids.get(self.mask) in known else None
        pad = of("pad_token")
        if pad in {start, end, mask, ids.get(named.get("unk_token", "")), *self.before, *self.after}:
            pad = None  # a token that can occur in a text is never masked
        return SpecialIds(pad, start, end, mask, frozenset(known - {pad, start, end, mask}))

    def with_languages(self, *, source: str | None = None, target: str | None = None) -> GuestTokenizer:
        """Return the same vocabulary for other languages; ``None`` keeps a language."""
        for language in (source, target):
            if language is not None and language not in self.languages:
                raise CheckpointError(f"the tokenizer knows no language {language!r}")
        if not self.languages:
            return self
        changed = copy.copy(self)
        spoken = {"source": source or self.source_language, "target": target or self.target_language}
        changed._put_around(self._connection.ask("around", **spoken))
        return changed

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, including padded embedding rows."""
        return self._size

    def encode_prompt(self, text: str, prompt: Prompt) -> list[int]:
        """Return all ids that the model reads, as ``AutoTokenizer`` and ``apply_chat_template`` compute them.

        Raises ``InputError`` for a text that the template rejects.
        """
        text = _as_text(text)
        if not prompt.chat:
            return [*self.before, *self._connection.ask("encode_special", text=text), *self.after]
        ids = self._connection.ask("chat", messages=prompt.messages(text), variables=prompt.given)
        if isinstance(ids, str):
            raise refusal(ids)
        return ids

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        """Return ids of a text without the tokens around it; of special tokens, only the mask is read.

        With ``continues``, the text follows another one, so that no space is added before it.
        """
        text = _as_text(text)
        if not continues or not self.space_in_front:
            return self._cut(text)
        if text.startswith(" "):
            return self._cut(text[1:])
        for anchor in _ANCHORS:
            first, whole = self._cut(anchor), self._cut(anchor + text)
            if first and whole[: len(first)] == first:
                return whole[len(first) :]
        return self._cut(text)

    def encode_with_blanks(self, text: str) -> list[int]:
        """Return ``encode`` with the mask for every blank: ``[MASK]`` or ``___``."""
        return self.encode(text if self.mask is None else BLANK.sub(lambda blank: self.mask, text))

    def encode_target(self, text: str) -> list[int]:
        """Return ids of an output without the tokens around it; it may have its own vocabulary."""
        return self._cut(_as_text(text), target=True)

    def encode_continuation(self, prompt: str, text: str) -> list[int]:
        """Return ids of ``text`` as a continuation of ``prompt``, with a space between two words."""
        between = " " if text[:1].isalnum() and prompt and not prompt[-1].isspace() else ""
        first, whole = self.encode(prompt), self.encode(prompt + between + text)
        return whole[len(first) :] if whole[: len(first)] == first else self.encode(between + text, continues=True)

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts."""
        written = [_as_text(text) for text in texts]
        parts = [written[start : start + _AT_ONCE] for start in range(0, len(written), _AT_ONCE)]
        return [ids for part in parts for ids in self._connection.ask("encode", texts=part)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, without special tokens."""
        text = b"".join(self._bytes(id) for id in ids).decode("utf-8", errors="replace")
        return text.removeprefix(" ") if self.space_in_front else text

    def sequence(self, ids: Sequence[int], name: str = "source") -> TokenSequence:
        """Label ids with their text; input ids may have a vocabulary of their own."""
        if name == "source" and self._source_ids is not None:
            reading = copy.copy(self)
            reading._ids, reading._source_ids = self._source_ids, None
            for remembered in ("_names", "_shown"):
                reading.__dict__.pop(remembered, None)
            return reading.sequence(ids, name)
        return super().sequence(ids, name)

    def display(self, id: int) -> str:
        """Return how a token is shown: a leading space as ``·``, an id without an entry as ``⟨id⟩``."""
        if (shown := self._shown.get(id)) is None:
            name = self._names.get(id)
            if name is None or name in self.special_names:
                return f"⟨{id}⟩" if name is None else name
            shown = self._shown[id] = visible(self._bytes(id)) or name
        return shown

    @cached_property
    def _shown(self) -> dict[int, str]:
        return {}  # by id: many tokens of a long text are the same

    def to_id(self, piece: str) -> int | None:
        """Return the id of a piece, or None."""
        id = self._ids.get(piece)
        return id if id is not None and id < self._size else None

    def words(self, text: str) -> list[str]:
        """Return the pre-tokenizer's words in the notation of the pieces; no piece crosses their boundaries.

        SentencePiece's are split before every ▁ as well, because no known vocabulary has a piece with an inner ▁.
        """
        found = self._connection.ask("words", text=_as_text(text)) if text else []
        if self.alphabet != "SentencePiece":
            return found
        return [word for whole in found for word in re.findall("▁*[^▁]+|▁+", whole)]

    @cached_property
    def merges(self) -> tuple[tuple[str, str], ...]:
        """The merges of byte-pair encoding, the earliest first."""
        return tuple(map(tuple, self._connection.ask("merges")))

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """All entries by id, in the notation of the vocabulary; "" for an id without an entry."""
        return tuple(self._names.get(id, "") for id in range(self._size))

    @cached_property
    def token_bytes(self) -> tuple[bytes, ...]:
        """The bytes that each id stands for."""
        return tuple(self._bytes(id) for id in range(self._size))

    @cached_property
    def _names(self) -> dict[int, str]:
        return {id: name for name, id in self._ids.items() if id < self._size}

    def _bytes(self, id: int) -> bytes:
        name = self._names.get(int(id), "")
        if not name or name in self.special_names:
            return b""
        if name in self.typed and self.alphabet != "SentencePiece":
            return name.encode("utf-8", "replace")
        return BYTES_OF[self.alphabet](name)

    def _cut(self, text: str, *, target: bool = False) -> list[int]:
        return self._connection.ask("encode", texts=[text], target=target)[0] if text else []


def _vocabulary_size(config: dict, ids: dict[str, int], *, separate: bool) -> int:
    """Return the size in the config, including padded embedding rows, or else the number of ids.

    With ``separate``, outputs have a vocabulary of their own.
    """
    inner = config.get("text_config") if isinstance(config.get("text_config"), dict) else {}
    said = [config.get("decoder_vocab_size")] if separate else []
    said += [config.get("vocab_size"), inner.get("vocab_size")]
    return next((size for size in said if type(size) is int and size > 0), max(ids.values()) + 1)


def _as_text(text: str) -> str:
    return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)
