"""A note on an output to which the model gives a low probability: small models make mistakes."""

import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.files.model_card import card_of, training_examples
from transformer.predictions.answer_probabilities import read_answer
from ui.compute.loading import checkpoint_path
from ui.page.page import Page
from ui.words.texts import common

# Smallest probability of an output that needs no such words: of a text, whose probability is a product over its tokens,
# and of a class or a word.
CERTAIN_TEXT, CERTAIN_CHOICE = 0.1, 0.5
_TINY = 0.001


def uncertain_output(p: Page) -> tuple[str, str] | None:
    """Return the output's probability ("= 0.01") and the number of training examples on the card.

    ``None`` if the model is certain, has no such card, or did not choose the output; also in a lesson, which says what
    to notice.
    """
    answer, least = read_answer(p.trace), CERTAIN_TEXT if p.checkpoint.config.has_decoder else CERTAIN_CHOICE
    if p.focus.lesson or p.trace.forced or not answer.parts or answer.probability >= least:
        return None
    count = training_examples(card_of(checkpoint_path(p.focus.checkpoint)))
    if count is None:
        return None
    is_tiny = answer.probability < _TINY  # its digits would need a second line
    return f"< {three_digits(_TINY)}" if is_tiny else f"= {three_digits(answer.probability)}", whole(count)


def uncertainty_note(p: Page) -> str:
    """Return the end of a sentence about the probability of the output, as Markdown; "" if certain."""
    return "" if uncertain_output(p) is None else f" :gray[{common('uncertain.mistakes')}]"


def say_uncertain(p: Page) -> None:
    """Show a line if the output is uncertain."""
    if (found := uncertain_output(p)) is not None:
        st.caption(common("uncertain.line", probability=found[0], count=found[1]))
