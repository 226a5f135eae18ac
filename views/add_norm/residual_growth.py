"""The residual stream of one stack: how it grows, that in + update = out, and what each sub-layer adds."""

from dataclasses import astuple

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from charts.toolkit.words import in_words
from transformer.layers.residual_stream import CONVOLUTION, additions, contributions, stream_lengths
from transformer.text.message import N_
from ui.shell.page import Page
from ui.show.figures import show_figure, show_table
from ui.words.texts import as_plain, common
from views.add_norm import residual_figures


def say_order(p: Page) -> None:
    """Where the norms of this model stand, and what its layers add to the stream in an order of their own."""
    config = p.checkpoint.config
    st.markdown(p.text[config.norm])
    block = getattr(config, "block", "sequential")
    if block != "sequential":
        st.markdown(p.text[block])
    if f"{p.focus.stack}.layers.0.{CONVOLUTION}" in p.trace:
        st.markdown(p.text[CONVOLUTION])


def residual_stream(p: Page) -> None:
    """Growth of the stream, and the identity with the deviation that was found."""
    stack, norm = p.focus.stack, p.checkpoint.config.norm
    tokens = p.trace.tokens(stack)
    sums = additions(p.trace, stack, p.focus.token, norm=norm)
    say_order(p)
    st.markdown(
        p.text["identity"].format(
            count=len(sums),
            stack=common(f"focus.{stack}"),
            numbers=whole(len(sums) * len(tokens) * p.checkpoint.config.d_model),
            deviation=three_digits(max(addition.largest_deviation for addition in sums)),
        )
        + (f" {p.text['identity_post']}" if norm == "post" else "")
    )
    steps, lengths = stream_lengths(p.trace, stack)
    show_figure(
        residual_figures.residual_growth(lengths, steps=steps, tokens=tokens, highlighted=p.focus.token),
        name="residual-stream-growth",
        caption=p.text["growth_caption"],
        alt=p.text["growth_alt"],
    )
    show_table(
        pd.DataFrame(
            [(in_words(addition.sublayer), *astuple(addition)[1:]) for addition in sums],
            columns=[N_("sub-layer"), N_("‖in‖"), N_("‖update‖"), N_("‖in + update‖"), N_("largest deviation")],
        ),
        name="residual-identity",
        caption=p.text["identity_caption"].format(token=as_plain(tokens[p.focus.token].display)),
    )


def sublayer_updates(p: Page) -> None:
    """Ratio and cosine of every update, for every token."""
    sublayers, ratio, cosine = contributions(p.trace, p.focus.stack)
    show_figure(
        residual_figures.sublayer_contribution(
            ratio, cosine=cosine, sublayers=sublayers, tokens=p.trace.tokens(p.focus.stack)
        ),
        name="sublayer-updates",
        caption=p.text["updates_caption"],
        alt=p.text["updates_alt"],
    )
