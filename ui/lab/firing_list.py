"""Sentences in which a head or a unit is most active, as strips and in context."""

from collections.abc import Callable, Sequence

import pandas as pd

from charts.figures.firing_strips import firing_strips
from transformer.heads.firing_examples import Firing
from transformer.text.tokens import Token, TokenSequence
from ui.show.figures import chosen_row, show_figure, show_table
from ui.words.texts import common

_DRAWN = 10  # rows that fit on the first screen
_TABLE = "where-it-fires"


def show_firings(firings: Sequence[Firing], *, of_unit: bool, open_: Callable[[Firing], None]) -> None:
    """Show the examples; ``open_`` is called with the chosen one, before the next run."""
    drawn = firings[:_DRAWN]
    show_figure(
        firing_strips(
            [firing.strip for firing in drawn],
            tokens=[firing.read for firing in drawn],
            places=[firing.key for firing in drawn],
            marked=[firing.query if firing.asked is firing.read and not of_unit else None for firing in drawn],
            rows=[firing.asked[firing.query].display for firing in drawn],
            what=common("fires.hidden" if of_unit else "fires.weight"),
            title=common("fires.token" if of_unit else "fires.query"),
            signed=of_unit,
        ),
        name="firing-strips",
        caption=common("fires.caption_unit" if of_unit else "fires.caption_head"),
        alt=common("fires.alt"),
    )
    show_table(
        pd.DataFrame([_row(firing, of_unit=of_unit) for firing in firings]),
        name=_TABLE,
        caption=common("fires.table_unit" if of_unit else "fires.table_head"),
        height="content",
        on_select=lambda: _open_chosen(firings, open_),
        selection_mode="single-row",
    )


def _row(firing: Firing, *, of_unit: bool) -> dict[str, object]:
    token, looked_at = firing.asked[firing.query], firing.read[firing.key]
    row = {common("fires.hidden" if of_unit else "fires.weight"): firing.value}
    row[common("fires.token" if of_unit else "fires.query")] = token.display
    if not of_unit:
        row[common("fires.key")] = looked_at.display
    return {**row, common("fires.context"): in_context(firing), common("fires.sentence"): firing.sentence + 1}


def in_context(firing: Firing) -> str:
    """Return the text with the query in [ ] and the key in « »; both texts if they differ."""
    if firing.asked is firing.read:
        return _mark_tokens(
            firing.read, {firing.query: "[{}]"} | ({firing.key: "«{}»"} if firing.key != firing.query else {})
        )
    return f"{_mark_tokens(firing.asked, {firing.query: '[{}]'})} ← {_mark_tokens(firing.read, {firing.key: '«{}»'})}"


def _mark_tokens(tokens: TokenSequence, marks: dict[int, str]) -> str:
    return "".join(_mark_token(token, marks.get(token.index)) for token in tokens).strip()


def _mark_token(token: Token, mark: str | None) -> str:
    if mark is None:
        return "" if token.special else token.text
    if token.special:
        return f" {mark.format(token.display)} "
    bare = token.text.lstrip()
    return token.text[: len(token.text) - len(bare)] + mark.format(bare)


def _open_chosen(firings: Sequence[Firing], open_: Callable[[Firing], None]) -> None:
    if firing := chosen_row(_TABLE, firings):
        open_(firing)
