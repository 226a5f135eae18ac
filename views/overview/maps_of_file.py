"""Overview of a file of attention maps: how much it holds, and every head."""

import streamlit as st

from charts.canvas.attention_overview import attention_overview
from charts.canvas.choices import AnyHead
from charts.toolkit.numbers import whole
from transformer.runs.head_places import Head
from ui.shell.page import Page
from ui.show.drawings import show_overview
from ui.words.texts import as_plain


def show_maps(p: Page) -> None:
    """Draw every head of every kind of attention; a click opens one on the Attention page."""
    trace = p.trace
    groups = [
        [trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack))]
        for stack, kind in trace.attention_kinds()
    ]
    tokens = sum(len(trace.tokens(stack)) for stack in trace.stacks)
    heads = sum(view.n_heads for group in groups for view in group)
    model = p.checkpoint.model.content.model
    counts = {"heads": whole(heads), "layers": whole(sum(map(len, groups))), "tokens": whole(tokens)}
    st.markdown(p.text["maps"].format(name=as_plain(model or p.checkpoint.name), **counts))
    focus = Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    show_overview(attention_overview(groups, selected=AnyHead(*focus)), key="maps of the file")
    st.caption(p.text["maps_caption"])
