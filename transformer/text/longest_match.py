"""How WordPiece splits a word: at every position the longest entry of the vocabulary.

Wu et al. 2016; BERT, Devlin et al. 2019. A piece that continues a word is written with ``##`` in front.
"""

from __future__ import annotations

from dataclasses import dataclass

from transformer.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class MatchStep:
    """One step of the longest match.

    Attributes:
        tried: Longer pieces that are not in the vocabulary, longest first.
        found: The entry that is used; ``None`` if there is none, which makes the whole word unknown.
    """

    start: int
    tried: tuple[str, ...]
    found: str | None

    @property
    def end(self) -> int:
        """Number of characters of the word that have been matched after this step."""
        if self.found is None:
            return self.start
        return self.start + len(self.found) - (2 if self.start else 0)


def match_steps(tokenizer: Tokenizer, word: str) -> list[MatchStep]:
    """Return the steps that split ``word`` (as ``tokenizer.words`` gives it), from left to right."""
    steps: list[MatchStep] = []
    start = 0
    while start < len(word):
        front = "##" if start else ""
        tried: list[str] = []
        found = None
        for end in range(len(word), start, -1):
            piece = front + word[start:end]
            if tokenizer.to_id(piece) is not None:
                found = piece
                break
            tried.append(piece)
        step = MatchStep(start, tuple(tried), found)
        steps.append(step)
        if found is None:
            break
        start = step.end
    return steps


def pieces_of(steps: list[MatchStep]) -> list[str] | None:
    """Return the pieces of a word, or ``None`` if it is unknown."""
    return None if any(step.found is None for step in steps) else [step.found for step in steps]
