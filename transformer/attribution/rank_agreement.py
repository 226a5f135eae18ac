"""Whether two lists of numbers put the same things first."""

import numpy as np


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's ρ: the correlation of the ranks, −1…1; equal numbers share the mean of their ranks.

    Places where either is NaN are left out. NaN where fewer than three are left, or one side is the same everywhere:
    then there is no order to agree on. Raises ``ValueError`` for lists of different lengths.
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"the numbers have shapes {first.shape} and {second.shape}; give two lists of one length")
    known = ~(np.isnan(first) | np.isnan(second))
    if known.sum() < 3:
        return float("nan")
    ranks = [_ranks(values[known]) for values in (first, second)]
    centred = [rank - rank.mean() for rank in ranks]
    size = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float(centred[0] @ centred[1] / size) if size > 0 else float("nan")


def _ranks(values: np.ndarray) -> np.ndarray:
    """1 for the smallest; ties share their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]
