"""Texts that are recorded layer by layer: which pages show them, and what the reader is told."""

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.runs.decoding import CONTINUATION
from transformer.runs.inputs import prompt_of
from transformer.runs.recording_size import allowed_bytes, pass_bytes
from transformer.runs.run import Run
from transformer.runs.tracing import is_long
from ui.shell.navigation import NO_SENTENCE
from ui.words.texts import common

_OF_ONE_LAYER = ("tokens", "attention")  # pages that need at most one layer
_GIGABYTE = 1e9


def needs_every_layer(page: str) -> bool:
    """Return whether a page cannot show a text that is recorded layer by layer."""
    return not shows_one_layer(page) and page not in (*NO_SENTENCE, "training")


def shows_one_layer(page: str) -> bool:
    """Return whether a page needs at most one layer of a sentence at a time."""
    return page in _OF_ONE_LAYER


def reads_long_text(run: Run) -> bool:
    """Return whether the pages record this run layer by layer, with the output that the model generates.

    Raises:
        transformer.InputError: If the model cannot take the text.
    """
    return is_long(run, writes=0 if run.target or run.strategy else CONTINUATION)


def say_long_text(run: Run, text: str, *, kept: int = 0) -> str:
    """Return the text ``by_layer.…`` with the memory of a complete recording and the bytes ``kept``."""
    model, length = run.checkpoint.model, len(prompt_of(run.checkpoint, run.sentence))
    needed, most = pass_bytes(model, target=length), allowed_bytes()
    return common(
        f"by_layer.{text}",
        length=whole(length),
        needed=three_digits(needed / _GIGABYTE),
        most=three_digits(most / _GIGABYTE),
        kept=three_digits(kept / _GIGABYTE),
    )
