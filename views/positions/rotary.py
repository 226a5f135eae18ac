"""Rotary positions: the angles by which this model rotates its queries and keys."""

import streamlit as st

from charts.toolkit.style import three_digits
from transformer.guests.rotary_positions import Rotary, plain_rotary
from transformer.layers import positional_encodings
from ui.show.figures import show_figure, show_formula
from ui.words.texts import PageText, as_plain
from views.positions.distance_figures import rotary_angles
from views.positions.encoding_figures import CHANNELS, encoding_heatmap
from views.positions.positions_view_model import LONGEST, PositionsViewModel

_WAYS = {"yarn": "YaRN, Peng et al. 2023", "llama3": "Llama 3, Grattafiori et al. 2024"}


def two_heatmaps(view_model: PositionsViewModel, text: PageText) -> None:
    """Draw the sinusoids of Vaswani et al. next to the angles by which this model rotates its heads."""
    config, rotary, tokens = view_model.checkpoint.config, view_model.rotary, view_model.tokens
    if not rotary.n_turned:
        st.caption(text["nothing_added"])
        return
    width = config.d_model + config.d_model % 2
    added, turned = st.columns([3, 2])
    with added:
        st.markdown(text["both_added"])
        show_figure(
            encoding_heatmap(positional_encodings.sinusoidal_table(len(tokens), width), tokens=tokens),
            name="positions-heatmap",
        )
    with turned:
        st.markdown(text["both_turned"])
        table = positional_encodings.rotary_table(rotary, len(tokens))
        show_figure(encoding_heatmap(table, tokens=tokens, dimensions=CHANNELS), name="rotary-heatmap")
    position = view_model.token
    turns = positional_encodings.angles_of(rotary, len(tokens), n_positions=len(tokens))[position]
    middle = len(turns) // 2
    st.markdown(
        text["both_token"].format(
            token=as_plain(tokens[position].display),
            position=position,
            first=three_digits(float(turns[0])),
            middle=middle,
            second=three_digits(float(turns[middle])),
        )
    )
    st.caption(text["both_caption"].format(width=config.d_model, turned=rotary.n_turned, head=config.d_head))


def angles(view_model: PositionsViewModel, text: PageText) -> None:
    """Draw the effect of the rotation on the agreement between two tokens, by distance."""
    config, rotary, n_tokens = view_model.checkpoint.config, view_model.rotary, len(view_model.tokens)
    half = rotary.n_turned // 2
    if not half:
        st.caption(text["nothing_added"])
        return
    n_distances = min(config.max_length, max(LONGEST, n_tokens))
    frequencies = rotary.frequencies(n_tokens)
    show_figure(
        rotary_angles(
            positional_encodings.own_rotary_angles(view_model.attention, n_distances, n_positions=n_tokens),
            pairs=sorted({min(half - 1, round(part * (half - 1) / 5)) for part in range(6)}),
        ),
        name="rotary-angles",
        caption=text["angles_caption"].format(
            first=three_digits(float(frequencies[0])), last=three_digits(float(frequencies[-1]))
        ),
    )
    others = _other_layers(view_model, text)
    if rotary == plain_rotary(config.d_head):
        show_formula(
            rf"\theta_i = 10000^{{-2i/d_k}}, \qquad {_agreement()}",
            caption=" ".join([text["rotary_formula"].format(width=config.d_head), text["rotary_layouts"], *others]),
        )
        return
    waves = rf"\theta_i = {rotary.base:g}^{{-2i/{rotary.n_turned}}}"
    sizes = {"width": rotary.n_turned, "head": view_model.attention.d_head, "layer": view_model.layer}
    pairs = "(2i, 2i + 1)" if rotary.neighbours else f"(i, i + {rotary.n_turned}/2)"
    layouts = "rotary_layouts_neighbours" if rotary.neighbours else "rotary_layouts"
    said = [text["rotary_own"].format(**sizes, pairs=pairs), text[layouts]]
    if rotary.is_stretched:
        waves += r", \qquad \theta'_i = \theta_i / \lambda_i"
        said.append(_stretching(text, rotary, n_tokens))
    if (factor := rotary.attention_factor) != 1:
        said.append(text["rotary_factor"].format(factor=three_digits(factor), square=three_digits(factor**2)))
    show_formula(
        rf"\begin{{gathered}} {waves} \\[4pt] {_agreement('' if factor == 1 else 'a')} \end{{gathered}}",
        caption=" ".join([*said, *others]),
    )


def _other_layers(view_model: PositionsViewModel, text: PageText) -> list[str]:
    """Name the layers whose angles differ from those that are drawn (Gemma 3), if any."""
    same, others = (", ".join(map(str, layers)) for layers in view_model.rotary_layers)
    return [text["rotary_others"].format(same=same, others=others)] if others else []


def _agreement(factor: str = "") -> str:
    square = rf"{factor}^2\, " if factor else ""
    return rf"\langle {factor}R_m q,\, {factor}R_n k \rangle = {square}\langle R_{{m-n}}\, q,\, k \rangle"


def _stretching(text: PageText, rotary: Rotary, n_tokens: int) -> str:
    """Say how much slower than θ each pair rotates, λ, and by which method."""
    slower = rotary.slowing(n_tokens)
    least, most = three_digits(float(slower.min())), three_digits(float(slower.max()))
    if rotary.long_thetas:
        name = "rotary_longrope_long" if n_tokens > rotary.original_length else "rotary_longrope_short"
        return text[name].format(least=least, most=most, length=rotary.original_length, count=n_tokens)
    if least == most:
        return text["rotary_linear"].format(factor=most)
    way = _WAYS.get(rotary.way)
    if way is None:
        return text["rotary_factors"].format(least=least, most=most)
    kept, slowed, between = positional_encodings.stretched_pairs(rotary, n_tokens)
    return text["rotary_by_parts"].format(
        way=way, pairs=rotary.n_turned // 2, kept=kept, slowed=slowed, between=between, factor=most
    )
