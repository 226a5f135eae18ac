"""The residual stream of one stack: its growth, in + update = out, and each sub-layer's update."""

from dataclasses import astuple

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from charts.toolkit.words import localize
from ui.page.page import Page
from ui.show.figures import show_figure, show_table
from ui.words.texts import PageText, as_plain, common
from views.add_norm import residual_figures
from views.add_norm.add_norm_view_model import AddNormViewModel


def explain_order(view_model: AddNormViewModel, text: PageText) -> None:
    """State where the norms of this model are, and the order of its layers' updates if it is unusual."""
    st.markdown(text[view_model.order])
    if view_model.block != "sequential":
        st.markdown(text[view_model.block])


def residual_stream(p: Page, view_model: AddNormViewModel) -> None:
    """Draw the growth of the residual stream, and check the identity."""
    text, sums, tokens, post = p.text, view_model.additions, view_model.tokens, view_model.order == "post"
    explain_order(view_model, text)
    st.markdown(
        text["identity"].format(
            count=len(sums),
            stack=common(f"focus.{view_model.stack}"),
            numbers=whole(len(sums) * len(tokens) * view_model.checkpoint.config.d_model),
            deviation=three_digits(max(addition.largest_deviation for addition in sums)),
        )
        + (f" {text['identity_post']}" if post else "")
    )
    steps, lengths = view_model.stream_lengths
    show_figure(
        residual_figures.residual_growth(lengths, steps=steps, tokens=tokens, highlighted=view_model.token),
        name="residual-stream-growth",
        caption=text["growth_caption_post" if post else "growth_caption"],
        alt=text["growth_alt"],
    )
    show_table(
        pd.DataFrame(
            [(localize(addition.sublayer), *astuple(addition)[1:]) for addition in sums],
            columns=["sub-layer", "‖in‖", "‖update‖", "‖in + update‖", "largest deviation"],
        ),
        name="residual-identity",
        caption=text["identity_caption"].format(token=as_plain(view_model.focused.display)),
    )


def sublayer_updates(p: Page, view_model: AddNormViewModel) -> None:
    """Draw size and cosine of every update for every token."""
    sublayers, ratio, cosine = view_model.contributions
    show_figure(
        residual_figures.sublayer_contribution(ratio, cosine=cosine, sublayers=sublayers, tokens=view_model.tokens),
        name="sublayer-updates",
        caption=p.text["updates_caption"],
        alt=p.text["updates_alt"],
    )
