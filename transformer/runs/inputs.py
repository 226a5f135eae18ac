"""From what a person typed to ids, or to a sentence about why that cannot be done."""

import re

import torch
from torch import Tensor

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.text.message import Message
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, START_ID

MOST_CHARACTERS = 40_000
_SENTENCE = Message("The sentence")
BLANK = re.compile(r"\[MASK\]|_{3,}")


def source_tensor(checkpoint: Checkpoint, text: str, *, pads: int = 0) -> Tensor:
    """What the encoder reads: [1, position]. Translation: tokens + ``</s>``; encoder-only: ``<s>`` + tokens + ``</s>``.

    A masked-token model takes ``[MASK]`` or ``___`` for a blank; every other special token that is typed stays text.
    """
    ids = _ids(checkpoint, text)
    ids = [*ids, END_ID] if checkpoint.config.has_decoder else [START_ID, *ids, END_ID]
    check_length(checkpoint, len(ids) + pads, _SENTENCE, pads)
    return torch.tensor([ids + [PAD_ID] * pads], device=checkpoint.model.device)


def prompt_ids(checkpoint: Checkpoint, text: str) -> list[int]:
    """What a decoder-only model reads before it writes: ``<s>`` + tokens."""
    ids = [START_ID, *_ids(checkpoint, text)]
    check_length(checkpoint, len(ids), Message("The text"))
    return ids


def target_ids(checkpoint: Checkpoint, text: str) -> list[int]:
    """The tokens of a given answer, without special tokens."""
    ids = _ids(checkpoint, text, what=Message("The target"))
    check_length(checkpoint, len(ids) + 1, Message("The target"))
    return ids


def _ids(checkpoint: Checkpoint, text: str, *, what: Message = _SENTENCE) -> list[int]:
    if not text.strip():
        raise InputError("{what} is empty. Type at least one word, or take one of the examples.", what=what)
    if len(text) > MOST_CHARACTERS:  # before it is cut into tokens, which takes time
        raise InputError(
            "{what} has {length} characters; at most {most} are looked at. Nothing was cut: shorten it.",
            what=what,
            length=f"{len(text):,}",
            most=f"{MOST_CHARACTERS:,}",
        )
    encode = checkpoint.tokenizer.encode
    config = checkpoint.config
    if config.kind != "encoder-only" or config.n_classes:
        return encode(text)
    first, *others = BLANK.split(text)
    if not others:
        return encode(text)
    # The space before a blank belongs to the word that is missing; what follows ("." or " and") is taken as it is.
    ids = encode(first.removesuffix(" "))
    for number, part in enumerate(others, start=1):
        ids += [MASK_ID, *encode(part.removesuffix(" ") if number < len(others) else part, continues=True)]
    return ids


def check_length(checkpoint: Checkpoint, length: int, what: Message, pads: int = 0) -> None:
    """Raise ``InputError`` where ``length`` tokens, of which ``pads`` are padding, are more than the model can read.

    ``what``: the text that has them, at the beginning of a sentence.
    """
    limit = checkpoint.config.max_length
    if length > limit:
        found = {"what": what, "length": length, "limit": limit, "more": length - limit}
        if pads:
            raise InputError(
                "{what} has {length} tokens (of which {pads} are padding), special tokens included, but this model "
                "reads at most {limit}. Nothing was cut: shorten it by about {more} tokens.",
                **found,
                pads=pads,
            )
        raise InputError(
            "{what} has {length} tokens, special tokens included, but this model reads at most {limit}. Nothing was "
            "cut: shorten it by about {more} tokens.",
            **found,
        )
