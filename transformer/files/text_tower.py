"""The text tower of a checkpoint that compares images with texts, as a checkpoint of its own."""

from transformer.errors import CheckpointError
from transformer.families.build import set_special_ids
from transformer.families.foreign_folder import fields_of
from transformer.families.framing import framing_of, padding_of
from transformer.files.checkpoints import Checkpoint
from transformer.guests.guest_model import GuestConfig
from transformer.guests.opening import open_guest, with_defaults
from transformer.text.foreign.tokenizer import open_tokenizer


def has_text_tower(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint that reads images has a second tower, for texts."""
    return isinstance(checkpoint.config, GuestConfig) and checkpoint.config.text_tower


def open_text_tower(checkpoint: Checkpoint) -> Checkpoint:
    """Open the text tower that belongs to an image tower.

    Raises:
        CheckpointError: If there is none, or its tokenizer cannot be read.
    """
    if not has_text_tower(checkpoint):
        raise CheckpointError(f"{checkpoint.name} has no text tower")
    fields = fields_of(checkpoint.path)
    opened = open_guest(checkpoint.path, fields, of_texts=True)
    fields = with_defaults({**fields["text_config"], "model_type": opened.config.family})
    tokenizer = open_tokenizer(checkpoint.path, config=fields, generation={})
    pad = None if opened.config.pads_texts else padding_of(opened.config, tokenizer)  # None: it attends to padding
    set_special_ids(opened.model, pad=pad, separator=tokenizer.special.end)
    return Checkpoint(
        path=checkpoint.path,
        model=opened.model,
        tokenizer=tokenizer,
        card=checkpoint.card,
        frame=framing_of(opened.config, tokenizer, fields, {}),
        mapping=opened.mapping,
        unread=opened.unread,
    )
