"""What the view models of pages about one run have in common: the run, and the token in focus."""

from dataclasses import dataclass, field

from transformer import Checkpoint, Trace
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


def second_token(trace: Trace, stack: str) -> int:
    """Return the position of the token after the first, where pages about one token open; 0 if there is none."""
    return min(1, len(trace.tokens(stack)) - 1)


def first_word(trace: Trace, stack: str) -> int:
    """Return the position of the first token of a stack that is not a special one; 0 if all are."""
    return next((token.index for token in trace.tokens(stack) if not token.special), 0)
