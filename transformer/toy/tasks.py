"""Three tasks on words of random letters: copy, reverse, sort."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.errors import InputError
from transformer.text.tokenizer import END_ID, PAD_ID, START_ID
from transformer.text.tokens import Token, TokenSequence

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHORTEST, LONGEST = 4, 10  # letters of a word in training
MAX_LETTERS = 15  # largest number of letters of a word to predict
FIRST_LETTER_ID = 3  # letters follow <pad>, <s> and </s>
VOCABULARY_SIZE = FIRST_LETTER_ID + len(LETTERS)
_SPECIAL = {PAD_ID: "<pad>", START_ID: "<s>", END_ID: "</s>"}


def _copy_places(letters: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(letters.shape[1]).expand_as(letters)


def _reverse_places(letters: Tensor, lengths: Tensor) -> Tensor:
    return (lengths[:, None] - 1 - torch.arange(letters.shape[1])).clamp(min=0)


def _sort_places(letters: Tensor, lengths: Tensor) -> Tensor:
    beyond = torch.arange(letters.shape[1]) >= lengths[:, None]
    return letters.masked_fill(beyond, VOCABULARY_SIZE).argsort(dim=1, stable=True)


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        places: Returns for each position of the output the position in the word that its letter comes from, [batch,
            place], given ids [batch, place] and lengths [batch]; positions beyond the length are meaningless.
        repeats: Whether a letter may occur twice in a word. In words to sort it does not, so that every letter of the
            output has exactly one source position.
    """

    name: str
    places: Callable[[Tensor, Tensor], Tensor]
    repeats: bool = True

    def answer(self, word: str) -> str:
        """Return the correct output: ``TASKS["reverse"].answer("abc") == "cba"``."""
        letters = torch.tensor([letter_ids(word)])
        return "".join(word[place] for place in self.places(letters, torch.tensor([len(word)]))[0].tolist())


TASKS = {
    "copy": Task("copy", _copy_places),
    "reverse": Task("reverse", _reverse_places),
    "sort": Task("sort", _sort_places, repeats=False),
}


@dataclass(frozen=True)
class Batch:
    """Words with their outputs, padded.

    Attributes:
        source: The word and ``</s>``, [batch, place + 1].
        read: ``<s>`` and the output, which the decoder reads.
        targets: The output and ``</s>``, which the decoder should predict.
        places: Position of each letter in the word, [batch, place].
        lengths: Number of letters, [batch].
    """

    source: Tensor
    read: Tensor
    targets: Tensor
    places: Tensor
    lengths: Tensor


def draw_batch(task: Task, size: int, generator: torch.Generator) -> Batch:
    """Draw ``size`` words of ``SHORTEST`` to ``LONGEST`` letters, all lengths and letters equally likely."""
    lengths = torch.randint(SHORTEST, LONGEST + 1, (size,), generator=generator)
    if task.repeats:
        letters = torch.randint(len(LETTERS), (size, LONGEST), generator=generator)
    else:
        letters = torch.rand(size, len(LETTERS), generator=generator).argsort(dim=1)[:, :LONGEST]
    return make_batch(task, letters + FIRST_LETTER_ID, lengths)


def make_batch(task: Task, letters: Tensor, lengths: Tensor) -> Batch:
    """Make a batch from ids [batch, position], where row b has ``lengths[b]`` valid ids."""
    places = task.places(letters, lengths)
    source = _add_end(letters, lengths)
    targets = _add_end(letters.gather(1, places), lengths)
    start = targets.new_full((len(targets), 1), START_ID)
    read = torch.cat((start, targets[:, :-1]), dim=1).masked_fill(targets == PAD_ID, PAD_ID)
    return Batch(source, read, targets, places, lengths)


def batch_of(task: Task, word: str) -> Batch:
    """Make a batch of one word, without padding.

    Raises:
        InputError: If the word is not made of letters.
    """
    return make_batch(task, torch.tensor([letter_ids(word)]), torch.tensor([len(word)]))


def _add_end(letters: Tensor, lengths: Tensor) -> Tensor:
    """Put ``</s>`` after the valid letters, then ``<pad>``; the result is one longer than ``letters``."""
    place = torch.arange(letters.shape[1] + 1)
    room = torch.cat((letters, letters.new_full((len(letters), 1), PAD_ID)), dim=1)
    room = room.masked_fill(place >= lengths[:, None], PAD_ID)
    return room.masked_fill(place == lengths[:, None], END_ID)


def letter_ids(word: str) -> list[int]:
    """Return the ids of a word's letters.

    Raises:
        InputError: Unless it has 1 to ``MAX_LETTERS`` letters from a to z.
    """
    if not 1 <= len(word) <= MAX_LETTERS:
        raise InputError(
            f"The word has {len(word)} letters. Type 1 to {MAX_LETTERS}; the model trains on words of "
            f"{SHORTEST} to {LONGEST}."
        )
    if strange := sorted(set(word) - set(LETTERS)):
        raise InputError(
            f"This model knows the letters a to z only, in lower case; it has no token for {' '.join(strange)}"
        )
    return [FIRST_LETTER_ID + LETTERS.index(letter) for letter in word]


def letters_of(ids: list[int]) -> str:
    """Return the letters among ids, without special tokens."""
    return "".join(LETTERS[id - FIRST_LETTER_ID] for id in ids if id >= FIRST_LETTER_ID)


def label_letters(ids: list[int], name: str) -> TokenSequence:
    """Label ids with their letters, for the axis of a figure."""
    shown = [_SPECIAL.get(id) or LETTERS[id - FIRST_LETTER_ID] for id in ids]
    tokens = (
        Token(index, id, "" if id in _SPECIAL else text, text, special=id in _SPECIAL)
        for index, (id, text) in enumerate(zip(ids, shown, strict=True))
    )
    return TokenSequence(tuple(tokens), name)
