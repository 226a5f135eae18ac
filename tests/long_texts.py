"""Sentences with a requested number of tokens."""

from __future__ import annotations

from transformer.files.checkpoints import Checkpoint
from transformer.text.sentence_files import SHIPPED, read_sentences


def long_sentence(checkpoint: Checkpoint, n_tokens: int) -> str:
    """Return included sentences, then single words, up to ``n_tokens`` tokens (special ones included).

    It is at most the model's maximum, and one fewer if the output follows in the same sequence.
    """
    config = checkpoint.config
    most = min(n_tokens, config.max_length) - (not config.has_encoder)
    words = " ".join(read_sentences(SHIPPED)).split()
    text, used = "", 0
    while used < len(words) and _length(checkpoint, longer := f"{text} {words[used]}".strip()) <= most:
        text, used = longer, used + 1
    while _length(checkpoint, f"{text} a") <= most:
        text = f"{text} a"
    return text


def _length(checkpoint: Checkpoint, text: str) -> int:
    """Return the number of tokens, with ``<s>``, ``</s>`` or both."""
    return len(checkpoint.tokenizer.encode(text)) + (2 if checkpoint.config.kind == "encoder-only" else 1)
