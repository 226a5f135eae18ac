"""What a position scheme does to the scores as two tokens stand farther apart: measured, and by its formula."""

import numpy as np
import streamlit as st

from charts.toolkit.style import signed
from transformer.families.family_config import FamilyConfig
from transformer.layers import positional_encodings
from transformer.text.tokens import TokenSequence
from ui.compute.store import store
from ui.shell.page import Page
from ui.show.figures import show_figure, show_formula
from views.positions.distance_figures import agreement_by_distance, relative_bias
from views.positions.table import Shown, table_of

MOST = 64  # positions; the measurement reaches half as far


def by_distance(p: Page, shown: Shown) -> None:
    """The model's own heads where it has this scheme; then the scheme's formula, where it has one."""
    if shown.own:
        _measured(p)
        if isinstance(p.checkpoint.config, FamilyConfig):
            return  # the formulas below are those of the paper's sizes and bases, not of this family's
    {
        "sinusoidal": _agreement,
        "rotary": _agreement,
        "learned": _learned,
        "alibi": _alibi,
    }.get(shown.scheme, lambda p, shown: None)(p, shown)


def _measured(p: Page) -> None:
    config, tokens = p.checkpoint.config, p.trace.tokens(p.focus.stack)
    n_positions = min(MOST, config.max_length)
    values, distances = _scores(p, _words(tokens), n_positions)
    show_figure(
        relative_bias(values, distances=distances),
        name="scores-by-distance",
        caption=p.text["distance_measured"].format(count=n_positions, texts=positional_encodings.N_TEXTS),
        alt=p.text["distance_alt"],
    )
    strongest = int((values.max(axis=1) - values.mean(axis=1)).argmax())
    best = int(distances[values[strongest].argmax()])
    st.markdown(p.text["distance_strongest"].format(head=strongest, distance=signed(best)))


def _words(tokens: TokenSequence) -> tuple[int, ...]:
    """The ids of the sentence without special tokens, of which a text holds one or none."""
    return tuple(token.id for token in tokens if not token.special) or tokens.ids


def _scores(p: Page, ids: tuple[int, ...], n_positions: int) -> tuple[np.ndarray, np.ndarray]:
    checkpoint, stack = p.checkpoint, p.focus.stack
    return store.get(
        checkpoint,
        ("position scores", ids, stack, n_positions),
        lambda: positional_encodings.measured_position_scores(checkpoint, ids, stack=stack, n_positions=n_positions),
    )


def _agreement(p: Page, shown: Shown) -> None:
    config, text = p.checkpoint.config, p.text
    curves = {text["sinusoidal"]: positional_encodings.sinusoidal_agreement(config.d_model + config.d_model % 2, MOST)}
    if config.d_head % 2 == 0:
        curves[text["rotary"]] = positional_encodings.rotary_agreement(config, MOST)
    show_figure(
        agreement_by_distance(curves, chosen=text[shown.scheme]),
        name="agreement-by-distance",
        caption=text["distance_agreement"].format(width=config.d_model, head=config.d_head),
        alt=text["distance_alt"],
    )
    sinusoidal = shown.scheme == "sinusoidal"
    product = (
        r"\frac{PE_m \cdot PE_n}{PE_0 \cdot PE_0}"
        if sinusoidal
        else r"\frac{\langle R_m q, R_n q\rangle}{\langle q, q\rangle}"
    )
    width = r"d_{\text{model}}" if sinusoidal else "d_k"
    show_formula(
        rf"{product} = \frac{{2}}{{{width}}} \sum_i \cos\big((m - n)\, \theta_i\big)",
        caption=text["distance_formula"].format(width=config.d_model if sinusoidal else config.d_head),
    )


def _learned(p: Page, shown: Shown) -> None:
    maximum = (shown.checkpoint or p.checkpoint).config.max_length
    table = table_of(p, shown, min(MOST, maximum))
    curve = positional_encodings.similarity_by_distance(positional_encodings.similarity(table))
    show_figure(
        agreement_by_distance({p.text["learned"]: curve}, chosen=p.text["learned"]),
        name="agreement-by-distance",
        caption=p.text["distance_learned"].format(count=len(table)),
        alt=p.text["distance_alt"],
    )


def _alibi(p: Page, shown: Shown) -> None:
    config = p.checkpoint.config
    bias = positional_encodings.alibi_bias(config.n_heads, MOST // 2 + 1)
    show_figure(
        relative_bias(bias, distances=-np.arange(MOST // 2 + 1)),
        name="alibi-by-distance",
        caption=p.text["distance_alibi"],
        alt=p.text["distance_alt"],
    )
    show_formula(
        r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} - m_h \, (i - j), \qquad m_h = 2^{-8 (h + 1) / n}",
        caption=p.text["alibi_formula"].format(heads=config.n_heads),
    )
