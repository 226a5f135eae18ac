"""A model that reads special tokens, or a chat, instead of the plain text that is typed."""

from dataclasses import replace

from transformer.errors import CheckpointError
from transformer.files.checkpoints import Checkpoint
from transformer.text.foreign.tokenizer import ForeignTokenizer
from transformer.text.prompt import Prompt


def takes_special(checkpoint: Checkpoint) -> bool:
    """Whether special tokens that are typed can be taken for such: other people's models that go on writing."""
    return checkpoint.config.kind == "decoder-only" and isinstance(checkpoint.tokenizer, ForeignTokenizer)


def takes_chat(checkpoint: Checkpoint) -> bool:
    """Whether its tokenizer has a chat template, too."""
    return takes_special(checkpoint) and checkpoint.tokenizer.has_template


def prompted(checkpoint: Checkpoint, prompt: Prompt) -> Checkpoint:
    """The same model for which a text means what ``prompt`` says. Raises ``CheckpointError`` where it cannot."""
    if not takes_special(checkpoint):
        raise CheckpointError("special tokens cannot be typed into {name}, nor a chat", name=checkpoint.name)
    if prompt.chat and not takes_chat(checkpoint):
        raise CheckpointError("{name} has no chat template", name=checkpoint.name)
    return replace(checkpoint, prompt=prompt)
