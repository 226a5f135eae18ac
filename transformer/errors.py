"""Errors whose messages are written for the user of the library."""

import os


class MessageError(ValueError):
    """An error whose message is a finished English sentence, for a reader of the app and of the library."""


class InputError(MessageError):
    """A text that the model cannot take. The message is a sentence for the person who typed it."""


class CheckpointError(MessageError):
    """A checkpoint directory that cannot be used. The message says what does not fit, with both values."""


class NotEnoughMemoryError(CheckpointError):
    """A model that needs more memory than is free. It may fit once other models have been unloaded."""


class NotFiniteError(MessageError):
    """A forward pass with NaN or infinite numbers. The message says where they first occur.

    Attributes:
        written: Token ids that decoding had already generated when the logits stopped being finite.
    """

    written: tuple[int, ...] = ()


class NotExposedError(MessageError):
    """Something that a model does not show because its own code computes it; the message says why."""


class TraceFileError(MessageError):
    """A file that holds no complete trace. The message says what is wrong with it."""


def text_of(error: Exception) -> str:
    """Return the message of an error, or its class name if it has none.

    The quotes that a ``KeyError`` puts around its message are left out, and an error of the operating system names its
    file first: "out.html: permission denied", not "[Errno 13] Permission denied: 'out.html'".
    """
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        file = error.filename2 or error.filename
        return f"{os.fsdecode(file) if isinstance(file, (str, bytes)) else file}: {error.strerror.lower()}"
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(message) or type(error).__name__
