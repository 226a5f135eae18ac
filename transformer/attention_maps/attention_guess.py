"""How well a reader predicts where a token will look."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GuessScore:
    """``guess`` [key]: 1/n on each of the n painted tokens, 0 elsewhere.

    ``overlap`` = Σ min(guess, α), 0 … 1: 1 where the guess is the row itself; it is 1 − ½ Σ |guess − α|. ``evenly``:
    the overlap if every allowed token is painted, i.e. without any idea. ``caught``: Σ α over the painted tokens, which
    grows with every token painted, and is therefore not a score.
    """

    guess: np.ndarray
    overlap: float
    evenly: float
    caught: float


def score_guess(weights: np.ndarray, painted: Collection[int], *, allowed: np.ndarray | None = None) -> GuessScore:
    """Compare the tokens ``painted`` with a row of attention ``weights`` [key] that sums to 1.

    ``allowed`` [key]: what the row may look at (default: all). Raises ``ValueError`` if nothing is painted, or a token
    that does not exist or may not be looked at.
    """
    weights = np.asarray(weights, dtype=np.float64)
    allowed = np.ones(len(weights), dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
    places = sorted(set(painted))
    if not places:
        raise ValueError("nothing was painted; choose at least one token")
    wrong = [place for place in places if not 0 <= place < len(weights) or not allowed[place]]
    if wrong:
        raise ValueError(f"token {wrong[0]} cannot be looked at by this row; it has {int(allowed.sum())} keys")
    guess, evenly = np.zeros(len(weights)), allowed / allowed.sum()
    guess[places] = 1 / len(places)
    return GuessScore(
        guess=guess,
        overlap=float(np.minimum(guess, weights).sum()),
        evenly=float(np.minimum(evenly, weights).sum()),
        caught=float(weights[places].sum()),
    )
