"""How a Unigram tokenizer splits a word: the pieces with the largest sum of scores.

Kudo 2018; Viterbi 1967. A score is the log probability of a piece. The best way to reach each position is stored from
left to right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

UNKNOWN_PENALTY = 10.0  # the score of an unknown character is this much below the lowest score


@dataclass(frozen=True)
class Candidate:
    """A piece that ends at a position: its score, and the sum of the best path that ends with it."""

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
    """Return the positions of ``text``, one per character, with the best path to each.

    Args:
        text: The text.
        scores: Score of each piece.
        longest: Number of characters of the longest piece.
        unknown: Score of a character that is not a piece itself. If two sums are equal, the one that begins further
            left wins.
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
    """A tokenizer whose pieces have scores."""

    scores: Mapping[str, float]


def path_steps(tokenizer: Unigram, word: str) -> list[Place]:
    """Return the positions of ``word`` (as ``tokenizer.words`` gives it) for a Unigram tokenizer."""
    scores = tokenizer.scores
    return best_path(
        word, scores, longest=max(map(len, scores), default=1), unknown=min(scores.values()) - UNKNOWN_PENALTY
    )


def pieces_of_path(places: list[Place]) -> list[Candidate]:
    """Return the best path; adjacent unknown characters form one piece."""
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
