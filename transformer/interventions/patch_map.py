"""The map of activation patching: the share of a change that a patch at each location undoes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer.interventions.activation_patching import HEADS, Contrast, Place, Turn

LEAST_SHOWN = 0.05  # the smallest share with which a token has a column in a map of more than NARROW tokens
NARROW = 8
_NEAR_BEST = 0.9  # fraction of the largest share; tokens above it count as equally good, and the deepest is named


@dataclass(frozen=True)
class PatchMap:
    """The share of the difference between two runs that a patch at each location undoes.

    Attributes:
        contrast: Both runs.
        turn: The output token that is compared.
        grid: What each cell patches, [row][column]; ``None`` for no such part.
        shares: The share of each location, in the order of the cells; NaN where the runs do not differ.
    """

    contrast: Contrast
    turn: Turn
    grid: tuple[tuple[Place | None, ...], ...]
    shares: np.ndarray

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All patched locations, in the order of the cells."""
        return tuple(place for row in self.grid for place in row if place is not None)

    @cached_property
    def values(self) -> np.ndarray:
        """The share of every cell: [row, column]; NaN where there is none."""
        known = iter(self.shares)
        return np.array([[np.nan if place is None else next(known) for place in row] for row in self.grid])

    @property
    def of_heads(self) -> bool:
        """Whether heads are patched at all positions, not vectors at one position."""
        return self.places[0].part in HEADS

    @property
    def labels(self) -> tuple[str, ...]:
        """Column labels: the tokens of both stacks, or the numbers of the heads."""
        if self.of_heads:
            return tuple(map(str, range(len(self.grid[0]))))
        return tuple(label for stack in self.contrast.clean for label in self.contrast.tokens(stack, self.turn).labels)

    @property
    def strongest(self) -> Place | None:
        """The location whose patch undoes most; among nearly equal tokens, the deepest in the model.

        The input of layer 0 at the swapped word undoes everything by construction, so it counts only if there is
        nothing else.
        """
        if not np.isfinite(self.shares).any():
            return None
        inner = [place.part != "residual" or place.layer > 0 for place in self.places]
        shares = np.where(inner, self.shares, -np.inf) if any(inner) else self.shares
        best = float(np.nanmax(shares))
        enough = best if self.of_heads or best <= 0 else _NEAR_BEST * best
        both = zip(self.places, shares, strict=True)
        return max((place.layer, share, place) for place, share in both if share >= enough)[2]

    def share(self, place: Place) -> float:
        """Return the share that the patch at a location undoes."""
        return float(self.shares[self.places.index(place)])

    def columns(self, *, every: bool) -> list[int]:
        """Return the columns to draw: if there are many tokens, only those at which a patch has an effect."""
        count = len(self.grid[0])
        if every or self.of_heads or count <= NARROW:
            return [*range(count)]
        largest = np.nan_to_num(np.abs(self.values)).max(axis=0)
        return [column for column in range(count) if largest[column] >= LEAST_SHOWN] or [*range(count)]
