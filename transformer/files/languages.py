"""One model of many languages: the language of what it reads, and of what it writes."""

from dataclasses import replace

from transformer.families.foreign_folder import read_json
from transformer.families.framing import framing_of
from transformer.files.checkpoints import Checkpoint
from transformer.files.layout import CONFIG, GENERATION
from transformer.text.foreign.tokenizer import ForeignTokenizer


def languages_of(checkpoint: Checkpoint) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The languages that may be chosen for a text and for its answer, by their codes; nothing where there is no choice.

    Marian knows the language of the answer alone.
    """
    tokenizer = checkpoint.tokenizer
    if not isinstance(tokenizer, ForeignTokenizer) or not tokenizer.languages:
        return (), ()
    codes = tuple(sorted(tokenizer.languages))
    return codes if tokenizer.source_language else (), codes


def speaking(checkpoint: Checkpoint, *, source: str | None = None, target: str | None = None) -> Checkpoint:
    """The same model for a text in another language, or for an answer in one; ``None`` leaves one as it is.

    Raises ``CheckpointError`` for a language that the tokenizer does not know.
    """
    tokenizer = checkpoint.tokenizer.with_languages(source=source, target=target)
    fields, generation = (
        read_json(file) if (file := checkpoint.path / name).is_file() else {} for name in (CONFIG, GENERATION)
    )
    return replace(checkpoint, tokenizer=tokenizer, frame=framing_of(checkpoint.config, tokenizer, fields, generation))
