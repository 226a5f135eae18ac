"""The tokenizer of a Hugging Face folder, with the methods of this project's own.

Ids are those of ``AutoTokenizer.from_pretrained(folder)(text).input_ids``; a special token that is typed stays text,
except for the mask.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from transformer.errors import CheckpointError
from transformer.text.foreign.files import guarded
from transformer.text.foreign.spec import HIDDEN
from transformer.text.foreign.tokenizer_folder import read_parts
from transformer.text.foreign.tokenizer_parts import Parts
from transformer.text.piece_bytes import BYTES_OF
from transformer.text.tokenizer import BLANK, Tokenizer
from transformer.text.tokens import TokenSequence, visible

_NO_TEXT = re.compile(f"[\ud800-\udfff{HIDDEN}]")
_ANCHORS = ("\n", ".", "x")


def open_tokenizer(folder: Path, *, config: dict, generation: dict) -> ForeignTokenizer:
    """``config``, ``generation``: the content of ``config.json`` and ``generation_config.json`` ({} without one).

    Raises ``CheckpointError`` for files that are too large, broken, or of a kind that is not known.
    """
    return guarded(folder, lambda: ForeignTokenizer(read_parts(folder, config, generation)))


class ForeignTokenizer(Tokenizer):
    """Text ↔ ids of another project's vocabulary.

    ``before`` and ``after`` stand around a text that is read; ``answer_before`` before the tokens of an answer (the
    token that a decoder starts with comes from the model's configuration).
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.special = parts.special
        self.kind, self.alphabet = parts.kind, parts.alphabet
        self.before, self.after, self.answer_before = parts.before, parts.after, parts.answer_before
        self.languages = parts.languages
        self.source_language, self.target_language = parts.source_language, parts.target_language
        self.space_in_front = parts.space_in_front
        highest = max(id for name, id in parts.ids.items() if name not in parts.special_names)
        if highest >= parts.size:
            raise CheckpointError(
                "the tokenizer gives ids up to {highest}, but config.json says vocab_size {size}",
                highest=highest,
                size=parts.size,
            )
        if beyond := [id for id in (*parts.before, *parts.after, *parts.answer_before) if id >= parts.size]:
            raise CheckpointError(
                "the tokenizer puts the id {id} around a text, but config.json says vocab_size {size}",
                id=beyond[0],
                size=parts.size,
            )

    def with_languages(self, *, source: str | None = None, target: str | None = None) -> ForeignTokenizer:
        """The same vocabulary for other languages; ``None`` leaves one as it is."""
        for language in (source, target):
            if language is not None and language not in self.languages:
                raise CheckpointError("the tokenizer knows no language {language}", language=repr(language))
        if self.parts.speaking is None:
            return self
        changed = copy.copy(self)
        ForeignTokenizer.__init__(
            changed, self.parts.speaking(source or self.source_language, target or self.target_language)
        )
        return changed

    @property
    def vocabulary_size(self) -> int:
        return self.parts.size

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        """Ids of a text, without the tokens around it. The mask is the only special token that can be typed.

        ``continues``: the text goes on after something else, so that no space is put in front.
        """
        text = _as_text(text)
        if not continues or not self.space_in_front:
            return self._ids(self.parts.encode, text)
        if text.startswith(" "):
            return self._ids(self.parts.encode, text[1:])
        for anchor in _ANCHORS:
            first, whole = self._ids(self.parts.encode, anchor), self._ids(self.parts.encode, anchor + text)
            if first and whole[: len(first)] == first:
                return whole[len(first) :]
        return self._ids(self.parts.encode, text)

    def encode_with_blanks(self, text: str) -> list[int]:
        """``encode`` with the mask for every blank: ``[MASK]`` or ``___``."""
        mask = self.parts.mask
        return self.encode(text if mask is None else BLANK.sub(lambda blank: mask, text))

    def encode_target(self, text: str) -> list[int]:
        """Ids of an answer, without the tokens around it: some models write with another vocabulary than they read."""
        return self._ids(self.parts.encode_target or self.parts.encode, _as_text(text))

    def encode_continuation(self, prompt: str, text: str) -> list[int]:
        """Ids of ``text`` where it goes on after ``prompt``; a space stands between two words."""
        between = " " if text[:1].isalnum() and prompt and not prompt[-1].isspace() else ""
        first, whole = self.encode(prompt), self.encode(prompt + between + text)
        return whole[len(first) :] if whole[: len(first)] == first else self.encode(between + text, continues=True)

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special tokens are left out."""
        text = b"".join(self._bytes(id) for id in ids).decode("utf-8", errors="replace")
        return text.removeprefix(" ") if self.space_in_front else text

    def sequence(self, ids: Sequence[int], name: str = "source") -> TokenSequence:
        """Label ids; ids that are read may have a vocabulary of their own."""
        if name == "source" and self.parts.source_ids is not None:
            return ForeignTokenizer(replace(self.parts, ids=self.parts.source_ids, source_ids=None)).sequence(ids, name)
        return super().sequence(ids, name)

    def display(self, id: int) -> str:
        """How one token is shown: a leading space as ``·``, an id without an entry as ``⟨id⟩``."""
        name = self._names.get(id)
        if name is None:
            return f"⟨{id}⟩"
        return name if name in self.parts.special_names else visible(self._bytes(id)) or name

    def to_id(self, piece: str) -> int | None:
        id = self.parts.ids.get(piece)
        return id if id is not None and id < self.parts.size else None

    def words(self, text: str) -> list[str]:
        """The pre-tokenizer's words, written as the pieces are: no piece crosses their borders.

        SentencePiece's are cut before every ▁ as well, where no known vocabulary has a piece across.
        """
        found = guarded(self.parts.file, lambda: self.parts.words(_as_text(text))) if text else []
        if self.alphabet != "SentencePiece":
            return found
        return [word for whole in found for word in re.findall("▁*[^▁]+|▁+", whole)]

    @cached_property
    def merges(self) -> tuple[tuple[str, str], ...]:
        return tuple(map(tuple, self.parts.merges()))

    @cached_property
    def scores(self) -> dict[str, float]:
        """Of a Unigram vocabulary: the score (log-probability) of every piece that stands for text."""
        return {piece: score for piece, score in self.parts.scores.items() if piece not in self.parts.special_names}

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """All entries by id, as the vocabulary writes them; "" where an id has none."""
        return tuple(self._names.get(id, "") for id in range(self.parts.size))

    @cached_property
    def token_bytes(self) -> tuple[bytes, ...]:
        return tuple(self._bytes(id) for id in range(self.parts.size))

    @cached_property
    def _names(self) -> dict[int, str]:
        return {id: name for name, id in self.parts.ids.items() if id < self.parts.size}

    def _bytes(self, id: int) -> bytes:
        name = self._names.get(int(id), "")
        if not name or name in self.parts.special_names:
            return b""
        if name in self.parts.typed and self.alphabet != "SentencePiece":
            return name.encode("utf-8", "replace")
        return BYTES_OF[self.alphabet](name)

    def _ids(self, encode: Callable[[str], list[int]], text: str) -> list[int]:
        return guarded(self.parts.file, lambda: encode(text)) if text else []


def _as_text(text: str) -> str:
    return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)
