"""The token or class of an output that a typed word names."""

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.runs.inputs import target_ids
from transformer.text.tokenizer import BLANK


def quoted(text: str, *, most: int = 60) -> str:
    """Quote a value, shortened for use in a sentence."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return f"“{shown}”"


def token_of(checkpoint: Checkpoint, sentence: str, word: str) -> int:
    """Return the single token of ``word`` in an output for ``sentence``, or the class of that name.

    Raises:
        InputError: If the word has several tokens, or the class does not exist.
    """
    config, tokenizer = checkpoint.config, checkpoint.tokenizer
    if config.n_classes:
        if word not in config.class_names:
            known = ", ".join(config.class_names)
            raise InputError(f"There is no class {quoted(word)}; there are {known}.")
        return config.class_names.index(word)
    if config.has_decoder:
        ids = target_ids(checkpoint, word, sentence)
    else:
        ids = tokenizer.encode_continuation(BLANK.split(sentence)[0].rstrip(), word)
    if len(ids) != 1:
        pieces = " ".join(tokenizer.display(id) for id in ids[:6])
        raise InputError(
            f"{quoted(word)} is {len(ids)} tokens of this model ({pieces}); what is measured is one token."
        )
    return ids[0]
