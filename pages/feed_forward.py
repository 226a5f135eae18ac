"""Feed-forward: what happens inside a token?"""

import streamlit as st

from charts.toolkit.numbers import whole
from transformer.feed_forward import FeedForward
from ui.shell.page import Page, page
from ui.shell.selectors import settle_labels
from ui.show.figures import show_formula, show_source
from views.feed_forward.units import all_tokens, one_token, words_of_units

FUNCTIONS = {"relu": r"\text{ReLU}", "gelu": r"\text{GELU}"}


def formula(p: Page) -> None:
    """The layer with the shapes of this sentence."""
    config = p.checkpoint.config
    show_formula(
        rf"\text{{FFN}}(x) = {FUNCTIONS[config.activation]}(x W_1 + b_1)\, W_2 + b_2",
        caption=p.text["formula_caption"].format(
            tokens=len(p.trace.tokens(p.focus.stack)), width=config.d_model, units=whole(config.d_ff)
        ),
    )


with page("feed_forward", needs=("stack", "layer", "token")) as p:
    views = {"token": one_token, "words": words_of_units, "sentence": all_tokens}
    settle_labels("feed-forward view", p.text, [f"tab_{view}" for view in views])
    tabs = st.tabs(
        [p.text[f"tab_{view}"] for view in views], key="feed-forward view", on_change="rerun", bind="query-params"
    )
    for tab, draw in zip(tabs, views.values(), strict=True):
        if tab.open:
            with tab:
                draw(p)
    formula(p)
    show_source(FeedForward)
