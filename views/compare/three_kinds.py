"""One sentence in three kinds of model: what a token may attend to in each."""

import streamlit as st

from charts.canvas.attention_maps import attention_map
from transformer.config import KINDS
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from ui.compute.loading import checkpoint_names, config_of
from ui.page.page import Page
from ui.show.drawings import show_map
from ui.words.texts import as_plain
from views.compare.compare_view_model import Side
from views.compare.run_comparison import map_height
from views.compare.two_checkpoints import code_of_checkpoints, trace_by


def kinds(p: Page) -> None:
    """Draw one column each for encoder-only, decoder-only and encoder-decoder: what a token may attend to."""
    st.markdown(p.text["kinds_intro"])
    st.html("<style>.st-key-compare-kinds [data-testid='stColumn'] { min-width: 19rem; }</style>")
    with st.container(key="compare kinds"):
        columns = st.columns(len(KINDS), gap="small", border=True)
    own = p.trace  # first, so that an error about the sentence is shown only once
    names = {kind: _checkpoint_of_kind(p, kind) for kind in reversed(KINDS)}
    for column, (kind, name) in zip(columns, names.items(), strict=True):
        with column:
            st.markdown(f"##### {p.text[f'kind_name_{kind}']}" + (f" · {as_plain(name)}" if name else ""))
            st.caption(p.text[f"kind_may_{kind}"])
            if not name:
                st.info(p.text["kind_missing"], icon=":material/info:")
                continue
            trace = own if name == p.focus.checkpoint else trace_by(p, name)
            for place in trace.attention_kinds() if trace else ():
                _small_map(p, trace, *place)
    code_of_checkpoints(p, [name for name in names.values() if name and name != p.focus.checkpoint])


def _small_map(p: Page, trace: Trace, stack: str, kind: str) -> None:
    """Draw the focused head, or the nearest one that exists in this model."""
    checkpoint, layer = trace.checkpoint, min(p.focus.layer, trace.n_layers(stack) - 1)
    head = min(p.focus.head, checkpoint.config.heads_in(stack) - 1)
    side = Side("A", trace, Head(stack, kind, layer, head), whole=False)
    drawn = attention_map(side.view, head=head, height=map_height())
    show_map(drawn, key=f"compare kind {checkpoint.name} {stack} {kind}")


def _checkpoint_of_kind(p: Page, kind: str) -> str:
    """Return the checkpoint in focus if it is of this kind, else the first of this kind."""
    found = []
    for name in checkpoint_names():
        try:
            config = config_of(name)
        except (OSError, ValueError):
            continue
        if config.kind == kind:
            found.append((name != p.focus.checkpoint, bool(config.class_names), name))
    return min(found)[2] if found else ""
