"""Heads: what do all heads do? Every layer × head on one screen, with the role that each has in this sentence."""

from __future__ import annotations

import streamlit as st

from transformer.analysis.head_roles import choose_role, head_roles, place_shares
from ui import page
from ui.attention_canvas import attention_grid
from ui.head_table import (
    ORDERS,
    captions,
    concatenation,
    definitions,
    role_counts,
    role_table,
    role_text,
    sorted_heads,
)
from ui.navigation import go_to
from ui.show import show_formula, show_snippet, show_source, show_table

with page("heads", needs=("stack", "kind", "layer", "head")) as p:
    focus, text = p.focus, p.text
    views = [p.trace.attention(focus.stack, layer, focus.kind) for layer in range(p.trace.n_layers(focus.stack))]
    roles = [role for view in views for role in head_roles(view)]
    sinks = {(view.layer, head): float(view.sink_share[head].mean()) for view in views for head in range(view.n_heads)}

    names = {text[f"order_{order}"]: order for order in ORDERS}
    order = st.segmented_control(
        text["order"],
        list(names),
        default=text["order_layer"],
        required=True,
        key="heads_order",
        help=text["order_help"],
        bind="query-params",
        persist_state="session",
    )
    chosen = attention_grid(
        views,
        key="heads grid",
        selected=(focus.layer, focus.head),
        captions=captions(roles, text),
        order=sorted_heads(roles, sinks, order=names[order]),
    )
    if chosen is not None and chosen != (focus.layer, focus.head):
        p.set_focus(layer=chosen.layer, head=chosen.head)

    st.markdown(role_counts(roles, text))
    here = next(role for role in roles if (role.layer, role.head) == (focus.layer, focus.head))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            text["chosen"].format(
                layer=focus.layer,
                head=focus.head,
                kind=text[f"kind_{focus.stack}_{focus.kind}"],
                role=role_text(here, text),
            ),
            width="content",
        )
        if st.button(text["open"], icon=":material/visibility:"):
            go_to("attention")

    latex, caption = concatenation(text, p.checkpoint.config, n_rows=len(views[0].query))
    show_formula(latex, caption=caption)

    st.subheader(text["table"], anchor=False)
    show_table(role_table(roles, text), name="heads", caption=text["table_caption"], placeholder="")
    with st.expander(text["definitions"], icon=":material/menu_book:"):
        st.markdown(definitions(text))
    show_snippet(
        f"{p.preamble}\nfrom transformer.analysis.head_roles import head_roles\n\n"
        f'view = trace.attention("{focus.stack}", layer={focus.layer}, kind="{focus.kind}")\n'
        f"role = head_roles(view)[{focus.head}]\nprint(role.role, role.score)\nprint(role.scores)\n"
    )
    show_source(head_roles, choose_role, place_shares)
