"""Conversion of typed text to token ids, with errors that explain why a text cannot be used."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.runs.recording_size import check_recording
from transformer.text.guests.tokenizer import GuestTokenizer
from transformer.text.sentence_pair import BETWEEN, sentences_of
from transformer.text.tokens import TokenSequence

MAX_CHARACTERS = 40_000
_SENTENCE = "The sentence"


def allow_characters(most: int) -> None:
    """Set the largest number of characters in a text for this process; ``MAX_CHARACTERS`` holds it."""
    global MAX_CHARACTERS
    MAX_CHARACTERS = most


def source_tensor(checkpoint: Checkpoint, text: str, *, pads: int = 0) -> Tensor:
    """Return what the encoder reads, [1, position].

    These are the tokens of the text in the frame of the checkpoint: in our own models, tokens + ``</s>`` for
    translation and ``<s>`` + tokens + ``</s>`` otherwise. A masked-token model accepts ``[MASK]`` or ``___`` as a
    blank, and one with segments accepts ``A || B`` as two sentences: ``<s>`` A ``</s>`` B ``</s>``. Every other special
    token that is typed stays plain text.
    """
    framing = checkpoint.framing
    sentences = sentences_of(text) if framing.between else [text]
    ids = list(framing.before)
    for index, sentence in enumerate(sentences):
        ids += [*(framing.between if index else ()), *_ids(checkpoint, sentence)]
    ids += framing.after
    _check_tokens(ids, _SENTENCE)
    check_length(checkpoint, len(ids) + pads, _SENTENCE, pads)
    check_recording(checkpoint.model, source=len(ids) + pads)
    return torch.tensor([ids + padding_ids(checkpoint, pads)], device=checkpoint.model.device)


def text_read(checkpoint: Checkpoint, ids: Sequence[int]) -> str:
    """Return the input text of an encoder, ``||`` between two sentences: the inverse of ``source_tensor``."""
    decode, end = checkpoint.tokenizer.decode, checkpoint.special.end
    if not checkpoint.framing.between or end not in ids:
        return decode(ids)
    first = ids.index(end)
    second = decode(ids[first + 1 :])
    return f"{decode(ids[:first])} {BETWEEN} {second}" if second else decode(ids)


def mark_task(checkpoint: Checkpoint, tokens: TokenSequence) -> TokenSequence:
    """Return an encoder's tokens with the role "task" for the words of a task prefix.

    The space at the end of a prefix belongs to the following word.
    """
    framing, tokenizer = checkpoint.framing, checkpoint.tokenizer
    begins = [(*framing.before, *tokenizer.encode(start.rstrip())) for start in framing.starts]
    length = max((len(ids) for ids in begins if tokens.ids[: len(ids)] == ids), default=0)
    told = (replace(token, role="task") if token.index < length and not token.special else token for token in tokens)
    return TokenSequence(tuple(told), tokens.name)


def padding_ids(checkpoint: Checkpoint, count: int) -> list[int]:
    """Return ``count`` padding tokens.

    Raises:
        InputError: If the model has no padding token.
    """
    if not count:
        return []
    pad = checkpoint.special.pad
    if pad is None:
        raise InputError(f"{checkpoint.name} has no padding token, so nothing can be padded.")
    return [pad] * count


def prompt_ids(checkpoint: Checkpoint, text: str) -> list[int]:
    """Return what a decoder-only model reads first: ``<s>`` + tokens, or as ``Checkpoint.prompt`` defines.

    It is enough if a long text fits into memory layer by layer (``transformer.runs.lazy_pass``).
    """
    if checkpoint.prompt is None:
        ids = [*checkpoint.framing.before, *_ids(checkpoint, text), *checkpoint.framing.after]
    else:
        _check_text(text, _SENTENCE)
        tokenizer = checkpoint.tokenizer
        assert isinstance(tokenizer, GuestTokenizer), "ours has neither a template nor special tokens to type"
        ids = tokenizer.encode_prompt(text, checkpoint.prompt)
    _check_tokens(ids, _SENTENCE)
    check_length(checkpoint, len(ids), "The text")
    check_recording(checkpoint.model, target=len(ids), by_layer=True)
    return ids


def prompt_of(checkpoint: Checkpoint, sentence: str) -> list[int]:
    """Return what the decoder reads before it generates its first token."""
    return list(checkpoint.framing.answer) if checkpoint.config.has_encoder else prompt_ids(checkpoint, sentence)


def target_ids(checkpoint: Checkpoint, text: str, sentence: str = "") -> list[int]:
    """Return the tokens of a given output for ``sentence``, without special tokens."""
    what = "The target"
    _check_text(text, what)
    tokenizer = checkpoint.tokenizer
    if checkpoint.config.has_encoder:
        ids = tokenizer.encode_target(text)
    elif checkpoint.prompt is not None and checkpoint.prompt.chat:
        ids = tokenizer.encode(text, continues=True)
    else:
        ids = tokenizer.encode_continuation(sentence, text)
    _check_tokens(ids, what)
    check_length(checkpoint, len(ids) + 1, what)
    check_recording(checkpoint.model, target=len(ids) + 1, by_layer=True)
    return ids


def _check_text(text: str, what: str) -> None:
    if not text.strip():
        raise InputError(f"{what} is empty. Type at least one word, or take one of the examples.")
    if len(text) > MAX_CHARACTERS:  # before tokenization, which takes time
        raise InputError(
            f"{what} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed. Nothing was cut: shorten it."
        )


def _ids(checkpoint: Checkpoint, text: str) -> list[int]:
    _check_text(text, _SENTENCE)
    if checkpoint.config.kind != "encoder-only" or checkpoint.config.n_classes:
        return checkpoint.tokenizer.encode(text)
    return checkpoint.tokenizer.encode_with_blanks(text)


def _check_tokens(ids: list[int], what: str) -> None:
    """Check that there are tokens: a third-party tokenizer may drop everything that it does not know."""
    if not ids:
        raise InputError(
            f"{what} has no token: the tokenizer of this model omits all of it. Type another text, or check "
            "that the tokenizer belongs to the model."
        )


def check_length(checkpoint: Checkpoint, length: int, what: str, pads: int = 0) -> None:
    """Check that the model can read ``length`` tokens, of which ``pads`` are padding.

    Args:
        checkpoint: The model.
        length: Number of tokens.
        what: Names the text at the beginning of the message.
        pads: How many of the tokens are padding.

    Raises:
        InputError: If there are more tokens than the model can read.
    """
    limit = checkpoint.config.max_length
    if length > limit:
        padding = f" (of which {pads} are padding)" if pads else ""
        raise InputError(
            f"{what} has {length} tokens{padding}, special tokens included, but this model reads at most {limit}. "
            f"Nothing was cut: shorten it by about {length - limit} tokens."
        )
