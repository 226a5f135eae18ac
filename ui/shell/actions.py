"""What a reader does in a figure, as plain values: every figure sends one of these (``ui.shell.reducer``).

No figure changes anything by itself. What a cell or a head means on a page is said by a function from one action to
those that follow from it, which the figure is given as ``means``:

    def _opens_arithmetic(cell: SelectCell) -> Actions:
        return SelectLocation(token=cell.query), SetChoice("attention_key", (cell.key,)), Reveal("attention arithmetic")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SelectCell:
    """A cell of a map: which row, which column. On a map of attention: which query token, which key token."""

    query: int
    key: int


@dataclass(frozen=True)
class SelectHead:
    """A head; without ``stack`` and ``kind`` one of the attention that the page is about."""

    layer: int
    head: int
    stack: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class SelectToken:
    """A token, by its position; without ``stack`` in the one that the page is about."""

    token: int
    stack: str | None = None


@dataclass(frozen=True)
class SelectLocation:
    """A place in the model; what is ``None`` stays as it is."""

    stack: str | None = None
    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    token: int | None = None


@dataclass(frozen=True)
class SelectSentence:
    """Another sentence, which the model answers by itself, at one of its tokens if that is said."""

    sentence: str
    token: int | None = None


@dataclass(frozen=True)
class SelectChip:
    """One card of several rows of cards."""

    row: int
    card: int


@dataclass(frozen=True)
class PaintMask:
    """Cells that were painted in one movement, and whether they are to be allowed or blocked."""

    cells: tuple[SelectCell, ...]
    allowed: bool


@dataclass(frozen=True)
class SetChoice:
    """The values of one control of a page, none for its default; without ``page`` of the one that is shown."""

    key: str
    values: tuple[object, ...] = ()
    page: str = ""


@dataclass(frozen=True)
class OpenPage:
    """Another page, by its name."""

    page: str


@dataclass(frozen=True)
class Reveal:
    """The keyboard, and the window, go to what was opened in the container of that key."""

    container: str


Action = (
    SelectCell
    | SelectHead
    | SelectToken
    | SelectLocation
    | SelectSentence
    | SelectChip
    | PaintMask
    | SetChoice
    | OpenPage
    | Reveal
)
Actions = tuple[Action, ...]
Meaning = Callable[[Action], Actions]
