"""Tokens as cards: text with visible spaces, a number below, a colour for its kind, a probability bar."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ui.shell.events import heard, whole_numbers
from ui.shell.token_rows import token_rows

TONES = ("plain", "word", "part", "byte", "special", "frame", "marked", "arrow")


@dataclass(frozen=True)
class Chip:
    """One card.

    Attributes:
        below: Text below ``text``.
        hint: Text shown on hover.
        share: Length of a bar, from 0 to 1.
    """

    text: str
    below: str = ""
    tone: str = "plain"
    hint: str = ""
    share: float | None = None

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise ValueError(f"tone is {self.tone!r}; choose one of {', '.join(TONES)}")
        if self.share is not None and not 0 <= self.share <= 1 + 1e-6:
            raise ValueError(f"share is {self.share}; it is drawn as a part of the card's width, 0 to 1")


@dataclass(frozen=True)
class ChipRow:
    """A row of cards with a title in front; ``chosen`` is the index of the followed card."""

    title: str
    chips: tuple[Chip, ...]
    chosen: int | None = None


def chips(
    rows: Sequence[ChipRow],
    *,
    key: str,
    legend: Mapping[str, str] | None = None,
    on_click: Callable[[int, int], None] | None = None,
) -> None:
    """Draw rows of cards; ``legend`` explains the tones.

    ``on_click`` is called with the row and the place of a card; without it no card can be clicked. Texts are typed by
    users: they reach the page as text only (``textContent``).
    """
    data = chips_data(rows, legend=legend, choose=on_click is not None)
    counts = tuple(len(row.chips) for row in rows)
    token_rows(key=key, data=data, on_chosen_change=partial(_hear, key, counts, on_click))


def _hear(key: str, counts: Sequence[int], on_click: Callable[[int, int], None] | None) -> None:
    if on_click and (chosen := read_choice(heard(key, "chosen"), counts)):
        on_click(*chosen)


def read_choice(value: object, counts: Sequence[int]) -> tuple[int, int] | None:
    """Validate a click from the browser, {"row": …, "card": …}, on rows with the given numbers of cards."""
    numbers = whole_numbers(value, ("row", "card"))
    return numbers if numbers and numbers[0] < len(counts) and numbers[1] < counts[numbers[0]] else None


def chips_data(rows: Sequence[ChipRow], *, legend: Mapping[str, str] | None, choose: bool) -> dict:
    """Return the data of the component; the legend contains only tones that occur."""
    used = {chip.tone for row in rows for chip in row.chips}
    return {
        "look": "chips",
        "rows": [
            {
                "title": row.title,
                "chosen": row.chosen,
                "clickable": choose,
                "tokens": [_card(chip, number, place) for place, chip in enumerate(row.chips)],
            }
            for number, row in enumerate(rows)
        ],
        "legend": [{"tone": tone, "text": text} for tone, text in (legend or {}).items() if tone in used],
    }


def _card(chip: Chip, row: int, place: int) -> dict:
    return {
        "text": chip.text,
        "below": chip.below,
        "kind": chip.tone,
        "title": chip.hint,
        "share": chip.share,
        "name": ", ".join(filter(None, [chip.text, chip.below, f"token {place}"])),
        "sends": {"row": row, "card": place},
    }
