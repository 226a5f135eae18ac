"""Painted cells of a map as texts in the address: "allow 2-3,2-4", "block 0-1"."""

import re
from collections.abc import Iterable, Mapping

Cell = tuple[int, int]  # query, key

_PAIR = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")


def cells_from_texts(texts: Iterable[str], *, on: str, off: str) -> dict[Cell, bool]:
    """Return whether each painted cell is on.

    A text begins with ``on`` or ``off``; any other is left out.
    """
    cells: dict[Cell, bool] = {}
    for text in texts:
        name, _, rest = text.partition(" ")
        if name in (on, off):
            pairs = filter(None, map(_PAIR.fullmatch, rest.split(",")))
            cells |= {(int(pair[1]), int(pair[2])): name == on for pair in pairs}
    return cells


def cells_to_texts(cells: Mapping[Cell, bool], *, on: str, off: str) -> tuple[str, ...]:
    """Return one text for the cells that are on and one for those that are off, none for no cells."""
    painted = []
    for name, wanted in ((on, True), (off, False)):
        if pairs := [f"{query}-{key}" for (query, key), is_on in sorted(cells.items()) if is_on == wanted]:
            painted.append(f"{name} {','.join(pairs)}")
    return tuple(painted)
