"""One model for many languages: the language of its input and of its output."""

from dataclasses import replace

from transformer.files.checkpoints import Checkpoint
from transformer.files.layout import CONFIG, GENERATION
from transformer.guests.folder import read_json
from transformer.guests.framing import framing_of
from transformer.text.guests.tokenizer import GuestTokenizer


def languages_of(checkpoint: Checkpoint) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the language codes that can be chosen for input and output; empty if there is no choice.

    Marian has a choice only for the output.
    """
    tokenizer = checkpoint.tokenizer
    if not isinstance(tokenizer, GuestTokenizer) or not tokenizer.languages:
        return (), ()
    codes = tuple(sorted(tokenizer.languages))
    return codes if tokenizer.source_language else (), codes


def with_languages(checkpoint: Checkpoint, *, source: str | None = None, target: str | None = None) -> Checkpoint:
    """Return the same model with another input or output language; ``None`` keeps one as it is.

    Raises:
        CheckpointError: If the tokenizer does not know a language.
    """
    tokenizer = checkpoint.tokenizer.with_languages(source=source, target=target)
    fields, generation = (
        read_json(file) if (file := checkpoint.path / name).is_file() else {} for name in (CONFIG, GENERATION)
    )
    return replace(checkpoint, tokenizer=tokenizer, frame=framing_of(checkpoint.config, tokenizer, fields, generation))
