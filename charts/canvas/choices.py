"""What a reader chooses in a drawing."""

from typing import NamedTuple


class Cell(NamedTuple):
    """One cell of an attention map: which query token, which key token."""

    query: int
    key: int


class HeadChoice(NamedTuple):
    """One head of one layer."""

    layer: int
    head: int


class AnyHead(NamedTuple):
    """One head of the whole model: ``attention`` is its kind, "self" or "cross"."""

    stack: str
    attention: str
    layer: int
    head: int


class MaskStroke(NamedTuple):
    """Cells that were painted on in one movement, and whether they are to be allowed or blocked."""

    cells: tuple[Cell, ...]
    allowed: bool
