"""Score for a reader's guess of where a token attends."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GuessScore:
    """Comparison of a guess with a row of attention.

    Attributes:
        guess: 1/n on each of the n selected tokens, 0 elsewhere, [key].
        overlap: Σ min(guess, α) = 1 − ½ Σ |guess − α|, from 0 to 1; 1 if the guess equals the row.
        evenly: The overlap if every allowed token is selected, i.e. without any knowledge.
        caught: Σ α over the selected tokens. It grows with every selected token, so it is not a score.
    """

    guess: np.ndarray
    overlap: float
    evenly: float
    caught: float


def score_guess(weights: np.ndarray, painted: Collection[int], *, allowed: np.ndarray | None = None) -> GuessScore:
    """Compare the tokens ``painted`` with a row of attention ``weights``, [key], that sums to 1.

    Args:
        weights: The row, [key].
        painted: Indices of the selected tokens.
        allowed: Mask of the row, [key]; all tokens by default.

    Raises:
        ValueError: If nothing is selected, or a token that does not exist or is masked.
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
