"""Many dimensions on a sheet of paper: principal component analysis."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Projection:
    """``coordinates``: [row, component]; ``explained``: share of the whole variance along each component, 0 … 1."""

    coordinates: np.ndarray
    explained: tuple[float, ...]


def principal_components(table: np.ndarray, *, count: int = 2) -> Projection:
    """Coordinates of the rows of ``table`` [row, column] along the directions in which they vary most (Pearson 1901).

    The rows are centred; the directions are the eigenvectors of their covariance with the largest eigenvalues, in
    float64. The sign of a direction means nothing; it is chosen so that its largest entry is positive, which makes the
    same table always give the same picture. ``explained`` tells how much the picture leaves out.
    """
    if not 1 <= count <= table.shape[1]:
        raise ValueError(f"count is {count}, but the rows have {table.shape[1]} columns; choose 1 to {table.shape[1]}")
    centred = table.astype(np.float64) - table.mean(axis=0, dtype=np.float64)
    eigenvalues, eigenvectors = np.linalg.eigh(centred.T @ centred)
    directions = eigenvectors[:, ::-1][:, :count]
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(count)])
    whole = float(eigenvalues.clip(min=0).sum())
    shares = tuple(float(value) / whole if whole else 0.0 for value in eigenvalues[::-1][:count].clip(min=0))
    return Projection((centred @ directions).astype(np.float32), shares)
