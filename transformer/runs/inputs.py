"""From what a person typed to ids, or to a sentence about why that cannot be done."""

from dataclasses import replace

import torch
from torch import Tensor

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.runs.recording_size import check_recording
from transformer.text.foreign.tokenizer import ForeignTokenizer
from transformer.text.message import Message
from transformer.text.tokens import TokenSequence

MAX_CHARACTERS = 40_000
_SENTENCE = Message("The sentence")


def allow_characters(most: int) -> None:
    """From now on, in this process, a text may have ``most`` characters; ``MAX_CHARACTERS`` says how many it may."""
    global MAX_CHARACTERS
    MAX_CHARACTERS = most


def source_tensor(checkpoint: Checkpoint, text: str, *, pads: int = 0) -> Tensor:
    """What the encoder reads: [1, position]. The tokens, in the frame of the checkpoint: ours + ``</s>`` where it
    translates, ``<s>`` + ours + ``</s>`` where it does not.

    A masked-token model takes ``[MASK]`` or ``___`` for a blank; every other special token that is typed stays text.
    """
    framing = checkpoint.framing
    ids = [*framing.before, *_ids(checkpoint, text), *framing.after]
    _check_tokens(ids, _SENTENCE)
    check_length(checkpoint, len(ids) + pads, _SENTENCE, pads)
    check_recording(checkpoint.model, source=len(ids) + pads)
    return torch.tensor([ids + padding(checkpoint, pads)], device=checkpoint.model.device)


def task_told(checkpoint: Checkpoint, tokens: TokenSequence) -> TokenSequence:
    """What an encoder reads with the role "task" on the words of the task that it begins with. The space at the end of
    a task belongs to the word that follows."""
    framing, tokenizer = checkpoint.framing, checkpoint.tokenizer
    begins = [(*framing.before, *tokenizer.encode(start.rstrip())) for start in framing.starts]
    length = max((len(ids) for ids in begins if tokens.ids[: len(ids)] == ids), default=0)
    told = (replace(token, role="task") if token.index < length and not token.special else token for token in tokens)
    return TokenSequence(tuple(told), tokens.name)


def padding(checkpoint: Checkpoint, count: int) -> list[int]:
    """``count`` tokens that mean nothing. Raises ``InputError`` for a model that has no such token."""
    if not count:
        return []
    if checkpoint.special.pad is None:
        raise InputError("{name} has no padding token, so nothing can be padded.", name=checkpoint.name)
    return [checkpoint.special.pad] * count


def prompt_ids(checkpoint: Checkpoint, text: str) -> list[int]:
    """What a decoder-only model reads before it writes: ``<s>`` + tokens, or what ``Checkpoint.prompt`` says."""
    if checkpoint.prompt is None:
        ids = [*checkpoint.framing.before, *_ids(checkpoint, text), *checkpoint.framing.after]
    else:
        _check_text(text, _SENTENCE)
        tokenizer = checkpoint.tokenizer
        assert isinstance(tokenizer, ForeignTokenizer), "ours has neither a template nor special tokens to type"
        ids = tokenizer.encode_prompt(text, checkpoint.prompt)
    _check_tokens(ids, _SENTENCE)
    check_length(checkpoint, len(ids), Message("The text"))
    check_recording(checkpoint.model, target=len(ids))
    return ids


def prompt_of(checkpoint: Checkpoint, sentence: str) -> list[int]:
    """What the decoder reads before it writes its first token."""
    return list(checkpoint.framing.answer) if checkpoint.config.has_encoder else prompt_ids(checkpoint, sentence)


def target_ids(checkpoint: Checkpoint, text: str, sentence: str = "") -> list[int]:
    """The tokens of a given answer to ``sentence``, without special tokens."""
    what = Message("The target")
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
    check_recording(checkpoint.model, target=len(ids) + 1)
    return ids


def _check_text(text: str, what: Message) -> None:
    if not text.strip():
        raise InputError("{what} is empty. Type at least one word, or take one of the examples.", what=what)
    if len(text) > MAX_CHARACTERS:  # before it is cut into tokens, which takes time
        raise InputError(
            "{what} has {length} characters; at most {most} are allowed. Nothing was cut: shorten it.",
            what=what,
            length=f"{len(text):,}",
            most=f"{MAX_CHARACTERS:,}",
        )


def _ids(checkpoint: Checkpoint, text: str) -> list[int]:
    _check_text(text, _SENTENCE)
    if checkpoint.config.kind != "encoder-only" or checkpoint.config.n_classes:
        return checkpoint.tokenizer.encode(text)
    return checkpoint.tokenizer.encode_with_blanks(text)


def _check_tokens(ids: list[int], what: Message) -> None:
    """A third-party tokenizer may leave out all that it does not know; a model cannot read nothing."""
    if not ids:
        raise InputError(
            "{what} has no token: the tokenizer of this model knows nothing in it and leaves it out. Type another "
            "text, or check that the tokenizer belongs to the model.",
            what=what,
        )


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
