"""The first view: the strongest units of the focused token, where each fires, and the words that it pushes."""

import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.layers.feed_forward_units import strongest_units, unit_words, why_no_words
from ui.shell.page import Page
from ui.show.figures import show_figure, show_snippet
from ui.words.texts import as_plain
from views.feed_forward.units import is_gated, length_of_what_is_added
from views.feed_forward.units_and_words import line_of, units_and_words

SHOWN = 8
_WORDS = 4
_ASKED = 40  # words of each unit, so that enough remain without single bytes


def strongest(p: Page) -> None:
    """One row for each of the strongest units."""
    place, text = (p.focus.stack, p.focus.layer, p.focus.token), p.text
    name, tokens = f"{p.focus.stack}.layers.{p.focus.layer}.feed_forward", p.trace.tokens(p.focus.stack)
    units = strongest_units(p.trace, *place, count=SHOWN)
    hidden, pre = p.trace.values(f"{name}.hidden"), p.trace.values(f"{name}.pre_activation")[p.focus.token]
    words = ()
    if not p.reads_pictures and why_no_words(p.checkpoint, p.focus.stack) is None:
        words = unit_words(p.trace, *place, units=units, words=_ASKED)
    kind = "none" if not words else "logits" if words[0].logits else "towards"
    if words:
        lines = [line_of([word.piece for word in one.up if not _is_bytes(word.piece)][:_WORDS]) for one in words]
    else:
        lengths = length_of_what_is_added(p, units)
        lines = [text["adds"].format(length=three_digits(length)) for length in lengths]
    left_out = any(_is_bytes(word.piece) for one in words for word in one.up[:_WORDS])
    token = as_plain(tokens[p.focus.token].display)
    claim = text["claim_gated" if is_gated(p) else "claim"].format(
        token=token, active=whole((pre > 0).sum()), units=whole(len(pre)), layer=p.focus.layer, shown=len(units)
    )
    st.markdown(f"{claim} {text[f'claim_{kind}'].format(token=token)}")
    show_figure(
        units_and_words(
            hidden[:, list(units)].T,
            tokens=tokens,
            followed=p.focus.token,
            units=units,
            words=lines,
            where=text["where"],
            what=text[f"what_{kind}"],
            value=text["hidden_value"],
            unit=text["unit_number"],
        ),
        name="strongest-units-of-a-token",
        caption=text[f"units_caption_{kind}"].format(
            token=token, to=text["to_classes" if p.checkpoint.config.n_classes else "to_decoder"]
        )
        + (f" {text['units_bytes']}" if left_out else ""),
        alt=text["units_alt"].format(token=token),
    )
    more = (
        f"for one in unit_words(trace, {', '.join(map(repr, place))}, units=units, words={_WORDS}):\n"
        "    print(one.unit, one.hidden, [(word.piece, word.effect) for word in one.up])\n"
        if words
        else f'print(trace.values("{name}.hidden")[:, list(units)])  # [token, unit]\n'
    )
    show_snippet(
        "strongest",
        f"{p.preamble}from transformer.layers.feed_forward_units import strongest_units, unit_words\n\n"
        f"units = strongest_units(trace, {', '.join(map(repr, place))}, count={SHOWN})\n{more}",
    )


def _is_bytes(piece: str) -> bool:
    """Whether a piece, as it is displayed, is a part of a character: nothing to read."""
    return "⟨" in piece
