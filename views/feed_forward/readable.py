"""The units that the page opens with: those of this sentence whose promoted words belong together."""

import streamlit as st

from transformer.layers.readable_units import NEAR, WORDS, ReadableUnit
from ui.compute.store import store
from ui.shell.page import Page
from ui.show.figures import show_figure, show_snippet
from ui.words.texts import as_plain
from views.feed_forward.feed_forward_view_model import READABLE, FeedForwardViewModel, feed_forward_view_model
from views.feed_forward.unit_figures import line_of, units_and_words
from views.view_models import first_word


def readable_units_of(p: Page) -> tuple[ReadableUnit, ...]:
    """Return the readable units of the focused stack, in all layers."""
    stack = p.focus.stack
    return store.get(p.run, ("readable units", stack), lambda: feed_forward_view_model(p.trace, stack=stack).readable())


def begins(p: Page) -> tuple[str, int]:
    """Return the initial stack and token: those of the most readable unit, or the first word."""
    units = readable_units_of(p)
    return p.focus.stack, units[0].position if units else first_word(p.trace, p.focus.stack)


def readable(p: Page, view_model: FeedForwardViewModel) -> None:
    """Draw one row for each readable unit: its values, and the words that it promotes."""
    text, units, tokens = p.text, readable_units_of(p), view_model.tokens
    first, kind = units[0], "logits" if units[0].words.logits else "towards"
    st.markdown(
        text[f"readable_{kind}"].format(
            unit=first.words.unit,
            layer=first.layer,
            token=as_plain(tokens[first.position].display),
            words=", ".join(map(as_plain, _words(first))),
        )
    )
    show_figure(
        units_and_words(
            view_model.values_of(units),
            tokens=tokens,
            followed=first.position,
            units=[text["readable_row"].format(layer=one.layer, unit=one.words.unit) for one in units],
            words=[line_of(_words(one)) for one in units],
            value=text["hidden_value"],
        ),
        name="readable-units",
        caption=text[f"readable_caption_{kind}"].format(close=first.n_close, pairs=WORDS * (WORDS - 1) // 2, near=NEAR),
        alt=text["readable_alt"],
    )
    show_snippet(
        "readable",
        f"{p.preamble}from transformer.layers.readable_units import readable_units\n\n"
        f'for one in readable_units(trace, "{view_model.stack}", count={READABLE}):\n'
        "    print(one.layer, one.words.unit, one.position, one.n_close, [word.piece for word in one.words.up])\n",
    )


def _words(unit: ReadableUnit) -> list[str]:
    """Return the promoted words of a unit, without the mark of a space before each word."""
    return [word.piece.removeprefix("·") for word in unit.words.up]
