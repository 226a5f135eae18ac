"""Which rows of the embedding matrix lie near each other, and sums such as "he" − "man" + "woman"."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Neighbour:
    """A row of the matrix and its cosine with what was asked for, −1 … 1."""

    id: int
    similarity: float


def nearest_rows(
    table: np.ndarray, vector: np.ndarray, *, count: int = 10, excluded: Collection[int] = ()
) -> tuple[Neighbour, ...]:
    """The rows of ``table`` [vocabulary, model] with the largest cosine to ``vector`` [model], nearest first.

    cos(a, b) = a·b / (‖a‖ ‖b‖). ``excluded`` rows are not considered. A row or vector of length 0 has cosine 0.
    """
    if vector.shape != table.shape[1:]:
        raise ValueError(f"vector has shape {vector.shape}, but the rows of the table have shape {table.shape[1:]}")
    lengths = np.linalg.norm(table, axis=1) * np.linalg.norm(vector)
    cosines = np.divide(table @ vector, lengths, out=np.zeros(len(table), dtype=table.dtype), where=lengths > 0)
    wanted = np.ones(len(table), dtype=bool)
    wanted[list(excluded)] = False
    candidates = np.flatnonzero(wanted)
    best = candidates[np.argsort(-cosines[candidates], kind="stable")[:count]]
    return tuple(Neighbour(int(row), float(cosines[row])) for row in best)


def analogy(table: np.ndarray, a: int, b: int, c: int, *, count: int = 10) -> tuple[Neighbour, ...]:
    """The rows nearest to E[a] − E[b] + E[c]: "a is to b as … is to c" (Mikolov et al. 2013).

    Each row is brought to length 1 first, so that no word counts more for being long (Levy & Goldberg 2014, 3CosAdd).
    The three words themselves are excluded, as usual: otherwise the answer would nearly always be a or c.
    """
    a_vector, b_vector, c_vector = (_unit(table[row]) for row in (a, b, c))
    return nearest_rows(table, a_vector - b_vector + c_vector, count=count, excluded={a, b, c})


def _unit(vector: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector
