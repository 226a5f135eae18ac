"""Three tasks on words of random letters: copy them, reverse them, sort them."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.errors import InputError
from transformer.text.tokenizer import END_ID, PAD_ID, START_ID
from transformer.text.tokens import Token, TokenSequence

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHORTEST, LONGEST = 4, 10  # letters of a word in training
MAX_LETTERS = 15  # letters that a word may have when the model is asked
FIRST_LETTER_ID = 3  # after <pad>, <s> and </s>
VOCABULARY_SIZE = FIRST_LETTER_ID + len(LETTERS)
_SPECIAL = {PAD_ID: "<pad>", START_ID: "<s>", END_ID: "</s>"}


def _copied(letters: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(letters.shape[1]).expand_as(letters)


def _reversed(letters: Tensor, lengths: Tensor) -> Tensor:
    return (lengths[:, None] - 1 - torch.arange(letters.shape[1])).clamp(min=0)


def _sorted(letters: Tensor, lengths: Tensor) -> Tensor:
    beyond = torch.arange(letters.shape[1]) >= lengths[:, None]
    return letters.masked_fill(beyond, VOCABULARY_SIZE).argsort(dim=1, stable=True)


@dataclass(frozen=True)
class Task:
    """``places(letters, lengths)`` says for each place of the answer from which place of the word its letter comes:
    [batch, place] from ids [batch, place] and lengths [batch]; beyond the length it means nothing.

    ``repeats``: whether a letter may occur twice in a word. In words to sort it does not, so that every letter of the
    answer has exactly one place where it can be looked up.
    """

    name: str
    places: Callable[[Tensor, Tensor], Tensor]
    repeats: bool = True

    def answer(self, word: str) -> str:
        """The right answer: ``TASKS["reverse"].answer("abc") == "cba"``."""
        letters = torch.tensor([letter_ids(word)])
        return "".join(word[place] for place in self.places(letters, torch.tensor([len(word)]))[0].tolist())


TASKS = {
    "copy": Task("copy", _copied),
    "reverse": Task("reverse", _reversed),
    "sort": Task("sort", _sorted, repeats=False),
}


def task_named(name: str) -> Task:
    if name not in TASKS:
        raise ValueError(f"task is {name!r}; choose one of {', '.join(TASKS)}")
    return TASKS[name]


@dataclass(frozen=True)
class Batch:
    """Words with their answers, padded.

    ``source`` [batch, place + 1]: the word and ``</s>``; ``read``: ``<s>`` and the answer, what the decoder reads;
    ``asked``: the answer and ``</s>``, what it is to predict. ``places`` [batch, place]: where each of its letters
    stands in the word; ``lengths`` [batch]: how many letters.
    """

    source: Tensor
    read: Tensor
    asked: Tensor
    places: Tensor
    lengths: Tensor


def draw_batch(task: Task, size: int, generator: torch.Generator) -> Batch:
    """``size`` words of ``SHORTEST`` to ``LONGEST`` letters, all lengths and all letters equally likely."""
    lengths = torch.randint(SHORTEST, LONGEST + 1, (size,), generator=generator)
    if task.repeats:
        letters = torch.randint(len(LETTERS), (size, LONGEST), generator=generator)
    else:
        letters = torch.rand(size, len(LETTERS), generator=generator).argsort(dim=1)[:, :LONGEST]
    return make_batch(task, letters + FIRST_LETTER_ID, lengths)


def make_batch(task: Task, letters: Tensor, lengths: Tensor) -> Batch:
    """From ids [batch, place] of which row b has ``lengths[b]`` that count."""
    places = task.places(letters, lengths)
    source = _ended(letters, lengths)
    asked = _ended(letters.gather(1, places), lengths)
    start = asked.new_full((len(asked), 1), START_ID)
    read = torch.cat((start, asked[:, :-1]), dim=1).masked_fill(asked == PAD_ID, PAD_ID)
    return Batch(source, read, asked, places, lengths)


def batch_of(task: Task, word: str) -> Batch:
    """One word, without padding. Raises ``InputError`` for a word that is not made of letters."""
    return make_batch(task, torch.tensor([letter_ids(word)]), torch.tensor([len(word)]))


def _ended(letters: Tensor, lengths: Tensor) -> Tensor:
    """``</s>`` after the letters that count, ``<pad>`` after it: one place more than ``letters`` has."""
    place = torch.arange(letters.shape[1] + 1)
    room = torch.cat((letters, letters.new_full((len(letters), 1), PAD_ID)), dim=1)
    room = room.masked_fill(place >= lengths[:, None], PAD_ID)
    return room.masked_fill(place == lengths[:, None], END_ID)


def letter_ids(word: str) -> list[int]:
    """Ids of a word's letters. Raises ``InputError`` unless it has 1 to ``MAX_LETTERS`` letters from a to z."""
    if not 1 <= len(word) <= MAX_LETTERS:
        raise InputError(
            "The word has {length} letters. Type 1 to {most}; the model trains on words of {shortest} to {longest}.",
            length=len(word),
            most=MAX_LETTERS,
            shortest=SHORTEST,
            longest=LONGEST,
        )
    if strange := sorted(set(word) - set(LETTERS)):
        raise InputError(
            "This model knows the letters a to z only, in lower case; it has no token for {strange}",
            strange=" ".join(strange),
        )
    return [FIRST_LETTER_ID + LETTERS.index(letter) for letter in word]


def letters_of(ids: list[int]) -> str:
    """The letters among ids; special tokens are left out."""
    return "".join(LETTERS[id - FIRST_LETTER_ID] for id in ids if id >= FIRST_LETTER_ID)


def labelled(ids: list[int], name: str) -> TokenSequence:
    """Ids with the letters that they stand for, as the axis of a figure."""
    shown = [_SPECIAL.get(id) or LETTERS[id - FIRST_LETTER_ID] for id in ids]
    tokens = (
        Token(index, id, "" if id in _SPECIAL else text, text, special=id in _SPECIAL)
        for index, (id, text) in enumerate(zip(ids, shown, strict=True))
    )
    return TokenSequence(tuple(tokens), name)
