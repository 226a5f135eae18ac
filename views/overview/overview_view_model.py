"""The data of the Overview page for one run: its output with probabilities, and its size.

Everything that the page draws except the living picture is computed here, without Streamlit. A notebook builds the
same object:

>>> import transformer
>>> from views.overview.overview_view_model import overview_view_model
>>> checkpoint = transformer.load("checkpoints/en-fr")
>>> view_model = overview_view_model(transformer.trace(checkpoint, "The cat sat on the mat."))
>>> view_model.answer.text, view_model.output_kind, [part.display for part in view_model.parts[:2]]
("Le chat s'assit sur le tapis.", 'text', ['·Le', '·chat'])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from transformer import Trace
from transformer.predictions.answer_probabilities import (
    Answer,
    AnswerPart,
    least_probable_word,
    prediction_rows,
    read_answer,
    shown_classes,
)
from transformer.runs.next_sentence import NextSentenceAnswer, next_sentence
from views.view_models import RunViewModel


@dataclass(frozen=True)
class OverviewViewModel(RunViewModel):
    """One run as a whole."""

    @property
    def output_kind(self) -> str:
        """The kind of output: "text" of a decoder, a "class", a "vector", or "blanks" that are filled."""
        config = self.checkpoint.config
        if config.encodes_sentences:
            return "vector"
        return "text" if config.has_decoder else "class" if config.n_classes else "blanks"

    @cached_property
    def answer(self) -> Answer:
        """The output of the model with its probability, token by token."""
        return read_answer(self.trace)

    @cached_property
    def least_sure(self) -> str | None:
        """The word of a generated text to which the model gave the lowest probability, if it has several."""
        word = least_probable_word(self.trace) if self.output_kind == "text" else None
        return None if word is None else word.display

    @cached_property
    def expects(self) -> bool:
        """Whether a decoder adds nothing to the text, so that its expectations are shown."""
        return self.output_kind == "text" and prediction_rows(self.trace).everywhere

    @cached_property
    def parts(self) -> tuple[AnswerPart, ...]:
        """The probabilities that are shown: of the output's tokens, or of the (most likely) classes."""
        return tuple(shown_classes(self.trace) if self.output_kind == "class" else self.answer.parts)

    @cached_property
    def next_sentence(self) -> NextSentenceAnswer | None:
        """Whether sentence B follows sentence A; ``None`` without two sentences, or a head that predicts it."""
        return next_sentence(self.trace)

    @property
    def n_numbers(self) -> int:
        """How many numbers were computed."""
        return self.trace.activations.n_numbers


def overview_view_model(trace: Trace) -> OverviewViewModel:
    """Build the view model of one run."""
    return OverviewViewModel(trace)
