"""DeBERTa's positions: what they add to the scores, term by term."""

import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, QUERY_TITLE
from charts.canvas.value_map import value_map
from transformer.attention_maps.attention_arithmetic import score_rule
from ui.shell.page import Page
from ui.show.drawings import show_map
from ui.show.figures import show_formula
from views.positions.table import Shown


def position_terms(p: Page, shown: Shown) -> None:
    """DeBERTa's two terms of one head, as they are added to the scores, beside the scores."""
    stack, layer = p.focus.stack, min(p.focus.layer, p.trace.n_layers(p.focus.stack) - 1)
    name, tokens = f"{stack}.layers.{layer}.self_attention", p.trace.tokens(stack)
    rule = score_rule(p.checkpoint, stack, layer, "self")
    parts = [*rule.added, f"{name}.scores"]
    with st.grid(len(parts), min_column_width=280):
        for part in parts:
            kind = part.rsplit(".", 1)[1]
            with st.container():
                show_map(
                    value_map(
                        p.trace.values(part)[min(p.focus.head, p.checkpoint.config.heads_in(stack) - 1)],
                        row_labels=tokens.labels,
                        column_labels=tokens.labels,
                        row_title=QUERY_TITLE,
                        column_title=KEY_TITLE,
                        scale="diverging",
                        title=p.text[f"term_{kind}"],
                        value_name=p.text[f"term_{kind}"],
                    ),
                    key=f"positions {kind}",
                )
    st.markdown(p.text["terms"].format(layer=layer, head=p.focus.head))
    terms = {
        "content_to_position": r"q_i \cdot r^K_{\delta(i,j)}",
        "position_to_content": r"k_j \cdot r^Q_{\delta(j,i)}",
    }
    added = "".join(f" + {terms[part.rsplit('.', 1)[1]]}" for part in rule.added)
    show_formula(
        rf"s_{{ij}} = \frac{{q_i \cdot k_j{added}}}{{\sqrt{{{len(rule.added) + 1} \cdot d_k}}}}",
        caption=p.text["terms_formula"].format(width=rule.d_head),
    )
