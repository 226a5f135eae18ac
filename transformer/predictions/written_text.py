"""A generated text: how each token was chosen, its least likely word, its branches, its score.

A branch is a text in which another word was forced at some step, and which the model continued.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.predictions.decoding_steps import confidence, rank
from transformer.runs.decoding import Decoding
from transformer.runs.decoding_strategies import length_penalty
from transformer.runs.inputs import prompt_of

MOST_BRANCHES = 8
_END_OF_PREFIX = 60  # characters of a long text that ``text_before`` keeps


@dataclass(frozen=True)
class Branch:
    """A text in which another word was forced at some step; if none was forced, the original text.

    Attributes:
        kept: Ids that it shares with the text from which it branches off.
        word: The ids that were forced at that step.
    """

    kept: tuple[int, ...] = ()
    word: tuple[int, ...] = ()

    @property
    def forced(self) -> tuple[int, ...]:
        """All ids that the text must begin with."""
        return (*self.kept, *self.word)


ORIGINAL = Branch()


def write_branches(branches: Sequence[Branch]) -> str:
    """Return branches as one text, separated by commas: "5.17-300" if 300 was forced after 5 and 17."""
    return ",".join([f"{'.'.join(map(str, b.kept))}-{'.'.join(map(str, b.word))}" for b in branches])


def read_branches(text: str, checkpoint: Checkpoint) -> tuple[Branch, ...]:
    """Read the result of ``write_branches``: at most ``MOST_BRANCHES``, without impossible branches."""
    size, longest, framing = checkpoint.config.vocabulary_size, checkpoint.config.max_length, checkpoint.framing
    branches: list[Branch] = []
    for part in text.split(",") if text else ():
        kept, _, word = part.partition("-")
        numbers = [piece.split(".") if piece else [] for piece in (kept, word)]
        if not word or not all(n.isascii() and n.isdecimal() and len(n) < 8 for piece in numbers for n in piece):
            continue
        branch = Branch(*(tuple(map(int, piece)) for piece in numbers))
        inner = branch.forced[:-1]
        known = all(id < size and id not in framing.never for id in branch.forced)
        known = known and not set(inner) & set(framing.ends)
        if known and len(branch.forced) < longest and branch not in branches:
            branches.append(branch)
        if len(branches) == MOST_BRANCHES:
            break
    return tuple(branches)


def how_chosen(
    checkpoint: Checkpoint, decoding: Decoding, step: int, *, n_given: int, branch: Branch = ORIGINAL, greedy: bool
) -> str:
    """Return how the token of a step was chosen.

    Args:
        checkpoint: The model.
        decoding: Its text.
        step: Index of the token.
        n_given: How many tokens were forced (``n_forced``).
        branch: The branch that these tokens belong to, if they are not a given text.
        greedy: Whether all other tokens were chosen as the most likely ones, not drawn.

    Returns:
        "given", "given_first" (given, and the most likely), "kept" or "forced" (of a branch), "greedy", "greedy_end" or
        "sampling".
    """
    here = decoding.steps[step]
    if step < n_given:
        if branch != ORIGINAL:
            return "kept" if step < len(branch.kept) else "forced"
        return "given_first" if rank(here) == 1 else "given"
    if not greedy:
        return "sampling"
    return "greedy_end" if here.chosen.id in checkpoint.framing.ends else "greedy"


def text_before(checkpoint: Checkpoint, decoding: Decoding, sentence: str, step: int) -> str:
    """Return the end of the text before a step, including the prompt of a decoder-only model."""
    text = checkpoint.tokenizer.decode([*prompt_of(checkpoint, sentence), *decoding.tokens.ids[:step]])
    return f"… {text[-_END_OF_PREFIX:]}" if len(text) > _END_OF_PREFIX else text


def hesitant_step(decoding: Decoding, *, n_given: int = 0) -> int:
    """Return the step with the least likely word among those that the model chose, if there are any.

    If no whole word was chosen from among other words, it is the least likely token. If all but the end was given, it
    is the step at which the model most clearly expects another token.
    """
    found = confidence(decoding)
    probability = found.probability
    if n_given + 1 >= len(probability) > 1:
        return int((found.runner_up - probability).argmax())
    begin = n_given if n_given < len(probability) else 0
    words = [step for step in range(begin, len(probability)) if is_choice_of_words(decoding, step)]
    return min(words, key=probability.__getitem__) if words else begin + int(probability[begin:].argmin())


def is_choice_of_words(decoding: Decoding, step: int) -> bool:
    """Return whether a whole word was chosen, and the most likely other token is a word as well."""
    tokens, chosen = decoding.tokens, decoding.steps[step].chosen
    other = next((one for one in decoding.steps[step].candidates if one.id != chosen.id), None)
    ends = step + 1 == len(tokens) or not tokens[step + 1].text[:1].isalnum()
    begins = tokens[step].text[:1].isspace() or (step > 0 and not tokens[step - 1].text[-1:].isalnum())
    words = [one.display.lstrip("·") for one in (chosen, other) if one]
    return begins and ends and len(words) == 2 and all(len(word) > 2 and word.isalpha() for word in words)


@dataclass(frozen=True)
class TextScore:
    """The log-probability of a text and its number of tokens, with the score that ranks it in a beam.

    Attributes:
        total: Σ log p.
        exponent: Exponent of the length penalty.
    """

    total: float
    count: int
    exponent: float = 0.0

    @classmethod
    def of(cls, decoding: Decoding, exponent: float = 0.0) -> "TextScore":
        """Return the numbers of a text."""
        return cls(decoding.log_probability, len(decoding.tokens), exponent)

    @property
    def each(self) -> float:
        """The mean log p per token."""
        return self.total / self.count

    @property
    def penalty(self) -> float:
        """The length penalty of a text with this number of tokens."""
        return length_penalty(self.count, self.exponent)

    @property
    def score(self) -> float:
        """Σ log p divided by the length penalty."""
        return self.total / self.penalty


def likelier(text: Decoding, other: Decoding) -> tuple[str, float]:
    """Return whether ``text`` is "same", "likelier" or "less_likely" than ``other``, and by what factor."""
    gain = text.log_probability - other.log_probability
    found = "same" if text.tokens.ids == other.tokens.ids else "likelier" if gain >= 0 else "less_likely"
    return found, float(np.exp(min(abs(gain), 700.0)))
