"""What a reader does in a figure, as plain values: every figure sends one of these (``ui.shell.reducer``).

No figure changes anything by itself. What a cell means on a page is said by a function of the state and the action,
which the figure is given as ``means`` and which returns the actions that follow:

    def _open_arithmetic(state: State, cell: SelectCell) -> Actions:
        return SelectToken(cell.query), SetChoice("attention_key", (cell.key,)), Reveal("attention arithmetic")

An action that no ``means`` is given for means what its name says.
"""

from __future__ import annotations

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
    """The values of one control of a page, none for its default; without ``page`` of the one that is shown.

    ``owner``: what the values belong to, where the control does not belong to the same when it is drawn.
    """

    key: str
    values: tuple[object, ...] = ()
    page: str = ""
    owner: tuple | None = None


@dataclass(frozen=True)
class SelectStep:
    """A step of a text that is written."""

    step: int


@dataclass(frozen=True)
class OpenPage:
    """Another page, by its name, at a place in the model."""

    page: str
    location: SelectLocation | None = None


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
    | SelectStep
    | OpenPage
    | Reveal
)
Actions = tuple[Action, ...]
