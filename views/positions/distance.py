"""The effect of positions on scores: a learned bias, DeBERTa's terms, scores by distance."""

import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, QUERY_TITLE
from charts.canvas.value_map import value_map
from charts.toolkit.style import signed
from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.layers import positional_encodings
from ui.compute.store import store
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_formula
from ui.show.score_formula import score_formula
from ui.words.texts import PageText
from views.positions.distance_figures import relative_bias
from views.positions.positions_view_model import PositionsViewModel


def bias(view_model: PositionsViewModel, text: PageText) -> None:
    """Draw what each head adds to the score of a key at each distance."""
    values, distances = view_model.bias
    zero = "" if values.any() else text["bias_zero"]
    figure, caption = relative_bias(values, distances=distances), text["bias_caption"].format(zero=zero)
    show_figure(figure, name="relative-bias", caption=caption)
    n_tokens, stack = len(view_model.tokens), view_model.stack
    rule, heads = score_rule(view_model.checkpoint, stack, 0, "self"), view_model.checkpoint.config.heads_in(stack)
    product = score_formula(rule, r"q_i \cdot k_j", root="d_k")
    show_formula(
        rf"s_{{ij}} = {product} + b_{{\text{{head}}}}(j - i)",
        caption=f"{text['relative_formula']} b: {heads} × {n_tokens} × {n_tokens}.",
    )


def position_terms(view_model: PositionsViewModel, text: PageText) -> None:
    """Draw DeBERTa's two terms of one head, as they are added to the scores, next to the scores."""
    stack, layer, head, labels = view_model.stack, view_model.layer, view_model.head, view_model.tokens.labels
    name, rule = f"{stack}.layers.{layer}.self_attention", score_rule(view_model.checkpoint, stack, layer, "self")
    parts = [*rule.added, f"{name}.scores"]
    with st.grid(len(parts), min_column_width=280):
        for part in parts:
            title = text[f"term_{part.rsplit('.', 1)[1]}"]
            with st.container():
                show_map(
                    value_map(
                        view_model.trace.values(part)[head],
                        row_labels=labels,
                        column_labels=labels,
                        row_title=QUERY_TITLE,
                        column_title=KEY_TITLE,
                        scale="diverging",
                        title=title,
                        value_name=title,
                    ),
                    key=f"positions {part.rsplit('.', 1)[1]}",
                )
    st.markdown(text["terms"].format(layer=layer, head=head))
    terms = {
        "content_to_position": r"q_i \cdot r^K_{\delta(i,j)}",
        "position_to_content": r"k_j \cdot r^Q_{\delta(j,i)}",
    }
    added = "".join(f" + {terms[part.rsplit('.', 1)[1]]}" for part in rule.added)
    show_formula(
        rf"s_{{ij}} = \frac{{q_i \cdot k_j{added}}}{{\sqrt{{{len(rule.added) + 1} \cdot d_k}}}}",
        caption=text["terms_formula"].format(width=rule.d_head),
    )


def by_distance(view_model: PositionsViewModel, text: PageText) -> None:
    """Draw what positions add to the scores of the first layer; for ALiBi, write its formula below."""
    name = ("position scores", *view_model.measured, view_model.stack)
    values, distances = store.get(view_model.checkpoint, name, view_model.scores_by_distance)
    show_figure(
        relative_bias(values, distances=distances),
        name="scores-by-distance",
        caption=text["distance_measured"].format(count=view_model.measured[1], texts=positional_encodings.N_TEXTS),
        alt=text["distance_alt"],
    )
    strongest = int((values.max(axis=1) - values.mean(axis=1)).argmax())
    best = int(distances[values[strongest].argmax()])
    st.markdown(text["distance_strongest"].format(head=strongest, distance=signed(best)))
    if view_model.scheme == "alibi":
        n_heads = view_model.checkpoint.config.heads_in(view_model.stack)
        slopes = r", \qquad m_h = 2^{-8 (h + 1) / n}" if n_heads & (n_heads - 1) == 0 else ""  # a power of two
        show_formula(
            rf"s_{{ij}} = \frac{{q_i \cdot k_j}}{{\sqrt{{d_k}}}} - m_h \, |i - j|{slopes}",
            caption=text["alibi_formula"].format(heads=n_heads),
        )
