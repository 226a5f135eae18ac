"""The tokens with which pages open a sentence that has no opening of its own."""

from transformer import Trace
from transformer.predictions.answer_probabilities import prediction_rows


def predicting_token(trace: Trace) -> int:
    """Return the position whose prediction is shown first."""
    opening = prediction_rows(trace).opening
    return second_token(trace, trace.stacks[-1]) if opening is None else opening


def second_token(trace: Trace, stack: str) -> int:
    """Return the position of the token after the first, where pages open; 0 if there is none."""
    return min(1, len(trace.tokens(stack)) - 1)
