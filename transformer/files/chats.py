"""Models that read special tokens, or a chat, instead of plain typed text."""

from dataclasses import replace

from transformer.errors import CheckpointError
from transformer.files.checkpoints import Checkpoint
from transformer.text.guests.tokenizer import GuestTokenizer
from transformer.text.prompt import Prompt


def takes_special(checkpoint: Checkpoint) -> bool:
    """Return whether a typed special token can be read as one: in third-party decoder-only models."""
    return checkpoint.config.kind == "decoder-only" and isinstance(checkpoint.tokenizer, GuestTokenizer)


def takes_chat(checkpoint: Checkpoint) -> bool:
    """Return whether the model reads special tokens and its tokenizer has a chat template."""
    return takes_special(checkpoint) and checkpoint.tokenizer.has_template


def with_prompt(checkpoint: Checkpoint, prompt: Prompt) -> Checkpoint:
    """Return the same model with ``prompt`` as the meaning of a typed text.

    Raises:
        CheckpointError: If the model does not support it.
    """
    if not takes_special(checkpoint):
        raise CheckpointError(f"special tokens cannot be typed into {checkpoint.name}, nor a chat")
    if prompt.chat and not takes_chat(checkpoint):
        raise CheckpointError(f"{checkpoint.name} has no chat template")
    return replace(checkpoint, prompt=prompt)
