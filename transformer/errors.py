"""The errors that a user of the library is meant to read."""


class MessageError(ValueError):
    """An error that remembers what its text was made of, so that it can be said in another language
    (``transformer.text.message``): ``InputError("{name} is empty", name="sentence")``."""

    def __init__(self, template: str, /, **values: object) -> None:
        texts = {name: text_of(value) if isinstance(value, Exception) else value for name, value in values.items()}
        super().__init__(template.format(**texts) if values else template)
        self.template, self.values = template, values


class InputError(MessageError):
    """A text that the model cannot take. The message is a sentence for the person who typed it."""


class CheckpointError(MessageError):
    """A checkpoint directory that cannot be used. The message says what does not fit, with both values."""


class NotEnoughMemoryError(CheckpointError):
    """A model that is larger than the memory that is free; it may fit when something else has gone."""


class NotFiniteError(MessageError):
    """A pass with NaN or infinite numbers, from which nothing can be computed. The message says where they begin.

    ``written``: the tokens that a decoding had chosen before its logits were not finite.
    """

    written: tuple[int, ...] = ()


class TraceFileError(MessageError):
    """A file that holds no whole trace. The message says what is wrong with it."""


def text_of(error: Exception) -> str:
    """What an error says; its name if nothing. A ``KeyError`` puts quotes around its text, which are left out."""
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(said) or type(error).__name__
