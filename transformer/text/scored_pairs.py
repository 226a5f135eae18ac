"""SentencePiece's byte-pair encoding: of all pairs side by side that make a piece, the one with the highest score is
joined first, the leftmost of equal ones."""

from __future__ import annotations

import heapq
from collections.abc import Mapping


def join_pairs(symbols: list[str], scores: Mapping[str, float], fixed: frozenset[str] = frozenset()) -> list[str]:
    """Join ``symbols`` until no pair makes a piece. ``fixed``: symbols that are never joined."""
    parts: list[str | None] = list(symbols)
    before, after = list(range(-1, len(parts) - 1)), list(range(1, len(parts) + 1))
    waiting: list[tuple[float, int, str, str]] = []

    def offer(left: int, right: int) -> None:
        if left < 0 or right >= len(parts) or parts[left] in fixed or parts[right] in fixed:
            return
        score = scores.get(parts[left] + parts[right])
        if score is not None:
            heapq.heappush(waiting, (-score, left, parts[left], parts[right]))

    for left in range(len(parts) - 1):
        offer(left, left + 1)
    while waiting:
        _, left, first, second = heapq.heappop(waiting)
        right = after[left]
        if parts[left] != first or right >= len(parts) or parts[right] != second:
            continue  # one of them has been joined to another since
        parts[left], parts[right] = first + second, None
        after[left] = after[right]
        if after[left] < len(parts):
            before[after[left]] = left
        offer(before[left], left)
        offer(left, after[left])
    return [part for part in parts if part is not None]
