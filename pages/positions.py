"""Positions: how the model knows the order of its tokens, and what it says when the order is changed or taken away."""

import streamlit as st

from transformer import positions as schemes
from transformer.layers.positional_encodings import (
    alibi_bias,
    measured_position_scores,
    reordered_positions,
    without_positions,
)
from transformer.variants.disentangled_attention import DisentangledAttention, RelativeEmbedding
from transformer.variants.family_embedding import HalvedSinusoids
from transformer.variants.partial_rotary import PartialRotaryEncoding
from ui.shell.choice import chosen_option
from ui.shell.page import Page, page
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_snippet, show_source
from views.positions.order import (
    another_order,
    can_reorder,
    choose_change,
    first_view,
    place_looked_at,
    stack_looked_at,
)
from views.positions.position_schemes import choose_scheme, say_whose, scheme_of, views_of

SOURCES = {
    "sinusoidal": (schemes.SinusoidalEncoding, schemes.sinusoidal_encoding),
    "learned": (schemes.LearnedEncoding,),
    "rotary": (schemes.RotaryEncoding,),
    "relative": (schemes.RelativePositionBias,),
    "alibi": (alibi_bias,),
    "disentangled": (DisentangledAttention.position_terms, RelativeEmbedding),
}


def own_sources(p: Page) -> tuple[type, ...]:
    """The code that computes this model's own positions, where it is not the paper's."""
    stack = p.checkpoint.model.get_submodule(p.focus.stack)
    used = (stack.embedding.position_encoding, stack.layers[0].self_attention.rotary)
    own = tuple(type(part) for part in used if type(part) in (HalvedSinusoids, PartialRotaryEncoding))
    return own or SOURCES[p.checkpoint.config.positions]


with page("positions", needs=("token",), marks=place_looked_at, only=stack_looked_at) as p:
    own = p.checkpoint.config.positions
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = scheme_of(p)
        views = dict(views_of(shown))
        if can_reorder(p):
            views = {"order": lambda p, shown: another_order(p), **views}
        if (first := first_view(p)) in views:
            views = {first: views[first], **views}
        view = None
        if views:
            more = {"wrap": True, "label_visibility": labels()}
            view = chosen_option(p.text, "view", list(views), key="positions view", owner=tuple(views), **more)
        if view == "order":
            choose_change(p)
        else:
            choose_scheme(p)
    if view != "order" and not (shown.own and view == first):  # what stands first says it itself
        say_whose(p, shown)
    if view:
        views[view](p, shown)
    show_source(
        *own_sources(p) if shown.own or view == "order" else SOURCES[shown.scheme],
        measured_position_scores,
        without_positions,
        reordered_positions,
    )
    stack = "encoder" if p.checkpoint.config.has_encoder else "decoder"
    show_snippet(
        "positions",
        p.preamble
        + "\nfrom transformer.layers.positional_encodings import reordered_positions, without_positions\n\n"
        + (f"print(trace['{p.focus.stack}.embedding.position'].values)\n" if own in ("sinusoidal", "learned") else "")
        + f"edits = without_positions(checkpoint.model, {stack!r})  # or reordered_positions(…, order)\n"
        + f"print(transformer.trace(checkpoint, {p.focus.sentence!r}, edits=edits).text)\n",
    )
