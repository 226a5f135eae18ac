"""Byte-level byte-pair encoding (Sennrich et al. 2016; bytes as in GPT-2, Radford et al. 2019, §2.2).

Every text is a sequence of bytes, so no character is unknown, and decoding restores exactly what was encoded. One space
is added before every text, so that a word at the beginning is the same token as the word in the middle; decoding
removes that space.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from transformer.config import SPECIAL_TOKENS
from transformer.errors import CheckpointError, text_of
from transformer.text.piece_bytes import BYTES_OF, WRITTEN_AS, byte_alphabet
from transformer.text.special_ids import Framing, SpecialIds
from transformer.text.tokenizer_files import check_tokenizer_file
from transformer.text.tokens import Token, TokenSequence, visible

BLANK = re.compile(r"\[MASK\]|_{3,}")
_SURROGATES = re.compile("[\ud800-\udfff]")
_ADDED_COUNT = 200  # the rarest merge of 12,000 entries joins about 80 occurrences
PAD_ID, START_ID, END_ID, MASK_ID = range(4)
SPECIAL_IDS = SpecialIds(PAD_ID, START_ID, END_ID, MASK_ID)
NEVER_WRITTEN = (PAD_ID, START_ID)
_WRITING = {"ends": (END_ID,), "never": NEVER_WRITTEN}
FRAMINGS = {
    "encoder-decoder": Framing(after=(END_ID,), answer=(START_ID,), given=(START_ID,), **_WRITING),
    "decoder-only": Framing(before=(START_ID,), **_WRITING),
    "encoder-only": Framing(before=(START_ID,), after=(END_ID,), never=NEVER_WRITTEN),
}


class Tokenizer:
    """Conversion between text and ids, with access to the merges.

    Attributes:
        kind: How words are split ("BPE", "WordPiece", "WordLevel" or "Unigram").
        alphabet: How pieces are written.
        space_in_front: Whether a text begins with a space that nobody typed.
        framing: Ids around a text, if they do not follow from the kind of model.
    """

    special = SPECIAL_IDS
    kind = "BPE"
    alphabet = "byte-level"
    space_in_front = True
    framing: Framing | None = None

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._backend = backend
        # "</s>" typed by a user is text, five characters, and never the special token.
        self._backend.encode_special_tokens = True
        for expected, special in enumerate(SPECIAL_TOKENS):
            if (found := backend.token_to_id(special)) != expected:
                raise CheckpointError(f"the tokenizer gives {special} the id {found}; this project needs {expected}")
        highest = max(backend.get_vocab().values())
        if highest != self.vocabulary_size - 1:
            raise CheckpointError(
                f"the tokenizer has {self.vocabulary_size} entries but its highest id is {highest}; ids have no gaps"
            )
        known = set(byte_alphabet().values())
        for piece in self.pieces[len(SPECIAL_TOKENS) :]:
            if not known.issuperset(piece):
                raise CheckpointError(f"the tokenizer's entry {piece!r} holds a character that stands for no byte")

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary_size: int, *, whole_words: Sequence[str] = ()) -> Tokenizer:
        """Learn merges until there are ``vocabulary_size`` entries (including 4 special tokens and 256 bytes).

        Each of ``whole_words`` is counted ``_ADDED_COUNT`` more times, so that it becomes a single token.

        Raises:
            ValueError: If the vocabulary is too small for them.
        """
        smallest = len(SPECIAL_TOKENS) + 256
        if vocabulary_size < smallest:
            raise ValueError(f"vocabulary_size is {vocabulary_size}; 4 special tokens and 256 bytes need {smallest}")
        backend = tokenizers.Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary_size,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        added = repeat(" ".join(whole_words), _ADDED_COUNT)
        backend.train_from_iterator((f" {text}" for text in chain(texts, added)), trainer)
        tokenizer = cls(backend)
        if split := [word for word in whole_words if len(tokenizer.encode(word)) > 1]:
            raise ValueError(
                f"vocabulary_size is {vocabulary_size}, too few for {len(whole_words)} whole words: {len(split)} are "
                f"split, {split[0]!r} among them"
            )
        return tokenizer

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Load a tokenizer from a file.

        Raises:
            CheckpointError: For anything but plain byte-level BPE with this project's special tokens.
        """
        check_tokenizer_file(Path(path))
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except CheckpointError:
            raise
        except Exception as error:  # the library raises plain Exception for every kind of broken file
            raise CheckpointError(f"{path} is not a tokenizer that can be read: {text_of(error)}") from error

    def save(self, path: Path) -> None:
        """Write the tokenizer to a file."""
        self._backend.save(str(path))

    @property
    def vocabulary_size(self) -> int:
        """Number of entries in the vocabulary."""
        return self._backend.get_vocab_size()

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        """Return the ids of a text, without special tokens.

        Lone surrogates are not text and become �. If the text ``continues`` another one, no space is added before it.
        """
        front = "" if continues else " "
        return self._backend.encode(front + _without_surrogates(text), add_special_tokens=False).ids if text else []

    def encode_with_blanks(self, text: str) -> list[int]:
        """Return ``encode`` with ``<mask>`` for every blank: ``[MASK]`` or ``___``."""
        first, *others = BLANK.split(text)
        if not others:
            return self.encode(text)
        # The space before a blank belongs to the missing word; what follows ("." or " and") is encoded as it is.
        ids = self.encode(first.removesuffix(" "))
        for number, part in enumerate(others, start=1):
            part = part.removesuffix(" ") if number < len(others) else part
            ids += [MASK_ID, *self.encode(part, continues=True)]
        return ids

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts in parallel."""
        whole = [" " + _without_surrogates(text) for text in texts]
        encodings = self._backend.encode_batch_fast(whole, add_special_tokens=False)
        return [encoding.ids if text else [] for text, encoding in zip(texts, encodings, strict=True)]

    def encode_target(self, text: str) -> list[int]:
        """Return the ids of an output, without special tokens: as ``encode``, since the vocabulary is shared."""
        return self.encode(text)

    def encode_continuation(self, text: str, continuation: str) -> list[int]:
        """Return the ids of what follows ``text`` in a decoder-only model, with a space between them."""
        return self.encode(continuation)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, without special tokens."""
        return b"".join(self.token_bytes[id] for id in ids).decode("utf-8", errors="replace").removeprefix(" ")

    def sequence(self, ids: Sequence[int], name: str = "source") -> TokenSequence:
        """Label ids with their text.

        A character made of several byte tokens belongs to the last of them; the texts of all tokens together are
        ``decode(ids)`` (with the space in front).
        """
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        roles = [self.special.role(id) for id in ids]
        if name == "target" and roles and roles[0] == "pad":
            roles[0] = "start"  # T5 and Marian begin an output with the padding token
        last = max((index for index, role in enumerate(roles) if not role), default=-1)
        tokens = []
        for index, (id, role) in enumerate(zip(ids, roles, strict=True)):
            text = "" if role else decoder.decode(self.token_bytes[id], final=index == last)
            display = self.display(id)
            after = index == 0 or roles[index - 1] not in ("", "mask") or tokens[-1].display.endswith("⏎")
            begins = not role and not display.startswith("·") and after
            tokens.append(Token(index, int(id), text, display, bool(role), role, begins))
        return TokenSequence(tuple(tokens), name)

    def display(self, id: int) -> str:
        """Return how a token is shown: a leading space as ``·``, a byte that is not a character as ``⟨F0⟩``."""
        return self._displays[id]

    @cached_property
    def _displays(self) -> tuple[str, ...]:
        """Display text of every token, computed once: a decoding step shows twenty candidates."""
        return SPECIAL_TOKENS + tuple(visible(raw) for raw in self.token_bytes[len(SPECIAL_TOKENS) :])

    def to_id(self, piece: str) -> int | None:
        """Return the id of a piece in the byte alphabet (as in ``pieces`` and ``merges``), or ``None``."""
        return self._backend.token_to_id(piece)

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """All entries of the vocabulary in the byte alphabet of the merges, by id."""
        by_id = sorted(self._backend.get_vocab().items(), key=lambda item: item[1])
        return tuple(piece for piece, _ in by_id)

    @cached_property
    def token_bytes(self) -> tuple[bytes, ...]:
        """The bytes that each id stands for; special tokens stand for none."""
        return tuple(b"" if id < len(SPECIAL_TOKENS) else self.bytes_of(piece) for id, piece in enumerate(self.pieces))

    def bytes_of(self, piece: str) -> bytes:
        """Return the bytes that a piece, or a word of ``words``, stands for."""
        return BYTES_OF[self.alphabet](piece)

    def to_piece(self, text: str) -> str:
        """Return a text in the vocabulary's notation, as one piece; the inverse of ``bytes_of``."""
        return WRITTEN_AS[self.alphabet](text)

    def readable(self, piece: str) -> str:
        """Return a piece in readable form: ``Ġthe`` → ``·the``."""
        return visible(self.bytes_of(piece))

    @cached_property
    def merges(self) -> tuple[tuple[str, str], ...]:
        """The learned merges, the earliest (most frequent in training) first."""
        stored = json.loads(self._backend.to_str())["model"]["merges"]
        return tuple(tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in stored)

    def words(self, text: str) -> list[str]:
        """Return the pre-tokenizer's words in the byte alphabet; merges never cross their boundaries."""
        if not text:
            return []
        return [word for word, _ in self._backend.pre_tokenizer.pre_tokenize_str(" " + _without_surrogates(text))]


def _without_surrogates(text: str) -> str:
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)
