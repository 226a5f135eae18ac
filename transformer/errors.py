"""The two errors that a user of the library is meant to read."""


class InputError(ValueError):
    """A text that the model cannot take. The message is a sentence for the person who typed it."""


class CheckpointError(ValueError):
    """A checkpoint directory that cannot be used. The message says what does not fit, with both values."""
