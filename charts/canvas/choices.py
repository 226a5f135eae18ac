"""A reader's choices in a figure."""

from typing import NamedTuple


class Cell(NamedTuple):
    """One cell of an attention map, by query and key."""

    query: int
    key: int


class HeadChoice(NamedTuple):
    """One head of one layer."""

    layer: int
    head: int


class AnyHead(NamedTuple):
    """One head of the whole model; ``attention`` is its kind, "self" or "cross"."""

    stack: str
    attention: str
    layer: int
    head: int


class MaskStroke(NamedTuple):
    """Cells painted in one movement, and whether they become allowed or blocked."""

    cells: tuple[Cell, ...]
    allowed: bool
