"""Rotary positions: by which angles this model turns its queries and keys."""

import streamlit as st

from charts.figures.relative_positions import rotary_angles
from transformer.analysis import positional
from transformer.variants.rotary import Rotary
from ui.shell.page import Page
from ui.show.figures import show_figure, show_formula
from views.positions.table import Shown

_SHOWN = 64  # distances at least


def angles(p: Page, shown: Shown) -> None:
    """Rotary encoding: what turning leaves of the agreement between two tokens, over their distance."""
    config = p.checkpoint.config
    attention = (
        p.checkpoint.model.get_submodule(p.focus.stack)
        .layers[min(p.focus.layer, p.trace.n_layers(p.focus.stack) - 1)]
        .self_attention
    )
    rotary = positional.rotary_of(attention) if shown.own else Rotary(config.d_head)
    half = rotary.width // 2
    if not half:
        st.caption(p.text["nothing_added"])
        return
    pairs = sorted({min(half - 1, round(part * (half - 1) / 5)) for part in range(6)})
    n_distances = min(config.max_length, max(_SHOWN, len(p.trace.tokens(p.focus.stack))))
    show_figure(
        rotary_angles(
            positional.own_rotary_angles(attention, n_distances)
            if shown.own
            else positional.rotary_angles(config, n_distances),
            pairs=pairs,
        ),
        name="rotary-angles",
        caption=p.text["angles_caption"],
    )
    agrees = r"\qquad \langle R_m q,\, R_n k \rangle = \langle R_{m-n}\, q,\, k \rangle"
    if rotary == Rotary(config.d_head):
        show_formula(
            rf"\theta_i = 10000^{{-2i/d_k}}, {agrees}", caption=p.text["rotary_formula"].format(width=config.d_head)
        )
        return
    stretched = rotary.factor != 1 or rotary.scaling is not None
    approximately = r"\approx" if stretched else "="
    show_formula(
        rf"\theta_i {approximately} {rotary.base:g}^{{-2i/{rotary.width}}}, {agrees}",
        caption=p.text["rotary_own"].format(
            width=rotary.width, head=attention.d_head, layer=min(p.focus.layer, p.trace.n_layers(p.focus.stack) - 1)
        )
        + (f" {p.text['rotary_stretched']}" if stretched else ""),
    )
