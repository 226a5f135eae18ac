"""What the view models of pages about one run have in common: the run, and the token in focus."""

from dataclasses import dataclass, field

from transformer import Checkpoint, Trace
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.text.tokens import Token, TokenSequence


@dataclass(frozen=True)
class RunViewModel:
    """One run.

    Attributes:
        trace: The recorded run.
    """

    trace: Trace = field(repr=False)

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of the run."""
        return self.trace.checkpoint


@dataclass(frozen=True)
class TokenViewModel(RunViewModel):
    """One run with a token in focus.

    Attributes:
        stack: The stack in focus, "encoder" or "decoder".
        token: The position of the token in focus.
    """

    stack: str
    token: int

    @property
    def tokens(self) -> TokenSequence:
        """The tokens of the stack."""
        return self.trace.tokens(self.stack)

    @property
    def focused(self) -> Token:
        """The token in focus."""
        return self.tokens[self.token]


def predicting_token(trace: Trace) -> int:
    """Return the second position from which the output is predicted, or the only one, e.g. a blank."""
    rows = prediction_rows(trace).rows
    return rows[1] if len(rows) > 1 else rows[0] if rows else second_token(trace, trace.stacks[-1])


def second_token(trace: Trace, stack: str) -> int:
    """Return the position of the token after the first, where pages open; 0 if there is none."""
    return min(1, len(trace.tokens(stack)) - 1)
