"""How WordPiece cuts a word: at every place the longest entry of the vocabulary (Wu et al. 2016; BERT, Devlin et al.
2019). A piece that goes on with a word is written with ``##`` in front."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class MatchStep:
    """``tried``: the longer pieces that are no entries, the longest first. ``found``: the entry that is taken, or
    ``None`` where there is none: then the whole word is unknown."""

    start: int
    tried: tuple[str, ...]
    found: str | None

    @property
    def end(self) -> int:
        """How many characters of the word are cut after this step."""
        if self.found is None:
            return self.start
        return self.start + len(self.found) - (2 if self.start else 0)


def match_steps(tokenizer: Tokenizer, word: str) -> list[MatchStep]:
    """The steps by which ``word`` (as ``tokenizer.words`` gives it) is cut, from left to right."""
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
    """The pieces of a word, or ``None`` where it is unknown."""
    return None if any(step.found is None for step in steps) else [step.found for step in steps]
