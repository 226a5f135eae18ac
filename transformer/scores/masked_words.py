"""Share of masked words that a masked-token model predicts: whole words, not tokens."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import torch

from transformer.models import Model
from transformer.runs.batches import length_batches, pad
from transformer.text.tokenizer import MASK_ID, PAD_ID, SPECIAL_TOKENS, Tokenizer

HIDDEN_SHARE = 0.15


@dataclass(frozen=True)
class HiddenWord:
    """One masked word in sentence ``sentence`` from position ``start`` on; ``answer`` are its tokens.

    ``has_letters`` says that it has a letter or a digit; otherwise it is a punctuation mark.
    """

    sentence: int
    start: int
    answer: tuple[int, ...]
    has_letters: bool


def hide_words(tokenizer: Tokenizer, examples: Sequence[Sequence[int]], *, seed: int = 0) -> list[HiddenWord]:
    """Choose 15 % of the words of each sentence, rounded, and at least one.

    The same sentences and seed give the same choice. ``examples`` are the ids of each sentence, including special
    tokens, which are never masked.
    """
    chance = random.Random(seed)
    hidden = []
    for index, ids in enumerate(examples):
        words = words_of(tokenizer, ids)
        n_hidden = min(len(words), max(1, round(HIDDEN_SHARE * len(words))))
        for start, end in sorted(chance.sample(words, n_hidden)):
            answer = tuple(ids[start:end])
            hidden.append(HiddenWord(index, start, answer, has_letters(tokenizer, answer)))
    return hidden


def words_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the start and the (exclusive) end of each word of a sentence, in tokens.

    A word is a token with a leading space together with the tokens without one that continue it. It may contain an
    apostrophe: ``don't`` is one word. Any other token without letters and digits (a full stop, a hyphen) is a word of
    its own, and ends the preceding word.
    """
    words: list[tuple[int, int]] = []
    before = _Kind.SPECIAL
    for position, id in enumerate(ids):
        kind = _kind(tokenizer, id)
        if kind is not _Kind.SPECIAL:
            starts = tokenizer.token_bytes[id].startswith(b" ") or before is _Kind.SPECIAL
            if not starts and (before is _Kind.SPACE or before is kind is _Kind.LETTERS):
                words[-1] = (words[-1][0], position + 1)
            else:
                words.append((position, position + 1))
        before = kind
    return words


def has_letters(tokenizer: Tokenizer, ids: Sequence[int]) -> bool:
    """Return whether tokens contain a letter or a digit."""
    return any(character.isalnum() for character in _text(tokenizer, ids))


class _Kind(Enum):
    SPECIAL, SPACE, LETTERS, PUNCTUATION = range(4)


def _kind(tokenizer: Tokenizer, id: int) -> _Kind:
    if id < len(SPECIAL_TOKENS):
        return _Kind.SPECIAL
    text = _text(tokenizer, (id,)).strip(" ")
    if not text:
        return _Kind.SPACE
    # A byte of a character that is split into several (�) is usually part of a letter.
    in_words = text.strip("'’") == "" or any(c.isalnum() or c == "\N{REPLACEMENT CHARACTER}" for c in text)
    return _Kind.LETTERS if in_words else _Kind.PUNCTUATION


def _text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    return b"".join(tokenizer.token_bytes[id] for id in ids).decode("utf-8", errors="replace")


@torch.inference_mode()
def recovered_words(
    model: Model, examples: Sequence[Sequence[int]], hidden: Sequence[HiddenWord], tokens: int
) -> list[bool]:
    """Return whether the most likely token is right at all positions of each masked word.

    Every token of every masked word is replaced by ``<mask>``, all words of a sentence at once. ``tokens`` is the
    number of tokens in a batch.
    """
    shown = [list(ids) for ids in examples]
    words_in: list[list[int]] = [[] for _ in examples]
    for number, word in enumerate(hidden):
        shown[word.sentence][word.start : word.start + len(word.answer)] = [MASK_ID] * len(word.answer)
        words_in[word.sentence].append(number)
    model.eval()
    right = [False] * len(hidden)
    for batch in length_batches([len(ids) for ids in shown], tokens, seed=0, epoch=0):
        best = model(pad([shown[index] for index in batch], PAD_ID).to(model.device)).argmax(dim=-1).tolist()
        for index, row in zip(batch, best, strict=True):
            for number in words_in[index]:
                word = hidden[number]
                right[number] = tuple(row[word.start : word.start + len(word.answer)]) == word.answer
    return right
