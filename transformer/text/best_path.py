"""How a Unigram tokenizer cuts a word: the pieces whose scores have the largest sum (Kudo 2018; Viterbi 1967).

A score is a piece's log-probability. From left to right, the best way to reach every place is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

UNKNOWN_PENALTY = 10.0  # below the lowest score: what an unknown character costs


@dataclass(frozen=True)
class Candidate:
    """A piece that ends at a place: its score, and the sum of the best way that ends with it."""

    piece: str
    start: int
    score: float
    total: float
    known: bool = True


@dataclass(frozen=True)
class Place:
    """All pieces that end after ``end`` characters; ``best`` is the index of the one that is kept."""

    end: int
    candidates: tuple[Candidate, ...]
    best: int


def best_path(text: str, scores: Mapping[str, float], *, longest: int, unknown: float) -> list[Place]:
    """The places of ``text``, one a character. A character that is no piece itself may be unknown, at that score.

    ``longest``: characters of the longest piece. Of two equal sums the one that begins further left stays.
    """
    ending: list[list[Candidate]] = [[] for _ in range(len(text) + 1)]
    best = [0] * (len(text) + 1)

    def reach(end: int, candidate: Candidate) -> None:
        found = ending[end]
        found.append(candidate)
        if candidate.total > found[best[end]].total:
            best[end] = len(found) - 1

    for start in range(len(text)):
        so_far = ending[start][best[start]].total if start else 0.0
        for end in range(start + 1, min(start + longest, len(text)) + 1):
            score = scores.get(piece := text[start:end])
            if score is not None:
                reach(end, Candidate(piece, start, score, so_far + score))
        if text[start] not in scores:
            reach(start + 1, Candidate(text[start], start, unknown, so_far + unknown, known=False))
    return [Place(end, tuple(ending[end]), best[end]) for end in range(1, len(text) + 1)]


class Unigram(Protocol):
    """A tokenizer whose pieces have scores, by piece."""

    scores: Mapping[str, float]


def path_steps(tokenizer: Unigram, word: str) -> list[Place]:
    """The places of ``word`` (as ``tokenizer.words`` gives it) in the vocabulary of a Unigram tokenizer."""
    scores = tokenizer.scores
    return best_path(
        word, scores, longest=max(map(len, scores), default=1), unknown=min(scores.values()) - UNKNOWN_PENALTY
    )


def kept(places: list[Place]) -> list[Candidate]:
    """The best path, from the end back to the beginning; unknown characters side by side are one piece."""
    path: list[Candidate] = []
    end = len(places)
    while end:
        candidate = places[end - 1].candidates[places[end - 1].best]
        end = candidate.start
        if path and not candidate.known and not path[-1].known:
            last = path.pop()
            candidate = Candidate(candidate.piece + last.piece, candidate.start, last.score, last.total, known=False)
        path.append(candidate)
    return path[::-1]
