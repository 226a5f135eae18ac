"""A reader's actions in figures, as plain values that every figure sends (``ui.shell.reducer``).

No figure changes anything by itself. The meaning of a cell on a page is defined by a function of the state and the
action, which the figure receives as ``means`` and which returns the resulting actions:

    def _open_arithmetic(state: State, cell: SelectCell) -> Actions:
        return SelectToken(cell.query), SetChoice("attention_key", (cell.key,)), Reveal("attention arithmetic")

An action without ``means`` does what its name says.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SelectCell:
    """Selects a cell of a map by row and column; on an attention map, by query and key."""

    query: int
    key: int


@dataclass(frozen=True)
class SelectHead:
    """Selects a head; without ``stack`` and ``kind``, one of the page's attention."""

    layer: int
    head: int
    stack: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class SelectToken:
    """Selects a token by position; without ``stack``, in the page's stack."""

    token: int
    stack: str | None = None


@dataclass(frozen=True)
class SelectLocation:
    """Selects a location in the model; ``None`` leaves a part unchanged."""

    stack: str | None = None
    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    token: int | None = None


@dataclass(frozen=True)
class SelectSentence:
    """Selects another sentence, for which the model generates the output, and a token of it."""

    sentence: str
    token: int | None = None


@dataclass(frozen=True)
class SelectChip:
    """Selects one card in several rows of cards."""

    row: int
    card: int


@dataclass(frozen=True)
class PaintMask:
    """Paints cells in one movement, and allows or blocks them."""

    cells: tuple[SelectCell, ...]
    allowed: bool


@dataclass(frozen=True)
class SetChoice:
    """Sets the values of one control of a page, none for its default; by default on the current page.

    ``owner`` is what the values belong to, if that may differ from the control's owner when it is drawn.
    """

    key: str
    values: tuple[object, ...] = ()
    page: str = ""
    owner: tuple | None = None


@dataclass(frozen=True)
class SelectStep:
    """Selects a step of a generated text."""

    step: int


@dataclass(frozen=True)
class OpenPage:
    """Opens another page by name, at a location in the model."""

    page: str
    location: SelectLocation | None = None


@dataclass(frozen=True)
class Reveal:
    """Moves the keyboard focus and the window to the container with that key."""

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
