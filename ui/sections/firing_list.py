"""Sentences in which a head or a unit is most active, as strips and in context."""

from collections.abc import Callable, Sequence

from charts.figures.firing_strips import firing_strips
from transformer.heads.firing_examples import Firing
from ui.page.page import Page
from ui.show.figures import chosen_row, show_figure
from ui.words.texts import common

_DRAWN = 10  # rows that fit on the first screen
TABLE = "where-it-fires"


def show_firings(p: Page, firings: Sequence[Firing], *, of_unit: bool, open_: Callable[[Firing], None]) -> None:
    """Show the examples; ``open_`` is called with the chosen one, before the next run."""
    drawn, of = firings[:_DRAWN], "unit" if of_unit else "head"
    value, asked = (common(f"fires.{name}") for name in (("hidden", "token") if of_unit else ("weight", "query")))
    show_figure(
        firing_strips(
            [firing.strip for firing in drawn],
            tokens=[firing.read for firing in drawn],
            places=[firing.key for firing in drawn],
            marked=[firing.query if firing.asked is firing.read and not of_unit else None for firing in drawn],
            rows=[firing.asked[firing.query].display for firing in drawn],
            what=value,
            title=asked,
            signed=of_unit,
        ),
        name="firing-strips",
        caption=common(f"fires.caption_{of}"),
        alt=common("fires.alt"),
    )
    rows = [
        {
            value: firing.value,
            asked: firing.asked[firing.query].display,
            **({} if of_unit else {common("fires.key"): firing.read[firing.key].display}),
            common("fires.context"): firing.in_context,
            common("fires.sentence"): firing.sentence + 1,
        }
        for firing in firings
    ]
    p.table(
        rows, name=TABLE, caption=common(f"fires.table_{of}"), height="content", selection_mode="single-row",
        on_select=lambda: open_chosen(firings, open_),
    )  # fmt: skip


def open_chosen(firings: Sequence[Firing], open_: Callable[[Firing], None]) -> None:
    """Open the example whose row was clicked (a callback)."""
    if firing := chosen_row(TABLE, firings):
        open_(firing)
