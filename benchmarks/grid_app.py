"""All heads on one screen, drawn by the canvas or by Plotly: The small app that ``benchmarks.wire`` measures.

    streamlit run benchmarks/grid_app.py      ?drawing=canvas|plotly &layers=6 &heads=8 &tokens=32

The weights are the softmax of random scores, the hardest case for compression. A click on a head of the canvas and the
button above either drawing choose the next head, which is then outlined: the same run of the script for both.
"""

import sys
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from plotly.subplots import make_subplots

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from charts.canvas.attention import attention_grid
from charts.canvas.choices import HeadChoice
from charts.toolkit.style import CHOSEN, SEQUENTIAL, colour_scale
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence
from ui.show.canvas import bring_canvas, show_grid


@st.cache_resource
def grid_views(n_layers: int, n_heads: int, n_tokens: int) -> list[AttentionView]:
    """One view per layer. Shared, so read-only."""
    scores = np.random.default_rng(0).normal(scale=1.5, size=(n_layers, n_heads, n_tokens, n_tokens))
    powers = np.exp(scores)
    weights = (powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32)
    words = [f"·word{index}" for index in range(n_tokens)]
    tokens = TokenSequence(
        tuple(Token(index=i, id=i, text=w.replace("·", " "), display=w, special=False) for i, w in enumerate(words)),
        name="source",
    )
    return [
        AttentionView(
            name=f"encoder.layers.{layer}.self_attention",
            stack="encoder",
            layer=layer,
            kind="self",
            weights=weights[layer],
            allowed=np.ones((n_tokens, n_tokens), dtype=bool),
            scores=scores[layer].astype(np.float32),
            query=tokens,
            key=tokens,
        )
        for layer in range(n_layers)
    ]


def plotly_grid(views: list[AttentionView], selected: tuple[int, int]) -> go.Figure:
    """The way that Plotly's documentation shows: one heatmap in each cell of ``make_subplots``."""
    n_heads, labels = views[0].n_heads, views[0].key.labels
    figure = make_subplots(rows=len(views), cols=n_heads, horizontal_spacing=0.005, vertical_spacing=0.01)
    for view in views:
        for head in range(n_heads):
            heatmap = go.Heatmap(
                z=view.weights[head], x=labels, y=labels, zmin=0, zmax=1,
                colorscale=colour_scale(SEQUENTIAL), showscale=False,
            )  # fmt: skip
            figure.add_trace(heatmap, row=view.layer + 1, col=head + 1)
    figure.update_xaxes(showticklabels=False)
    figure.update_yaxes(showticklabels=False, autorange="reversed")
    layer, head = selected
    figure.update_xaxes(mirror=True, showline=True, linewidth=3, linecolor=CHOSEN, row=layer + 1, col=head + 1)
    figure.update_layout(height=900, title_text=f"chosen: {layer}, {head}")
    return figure


def main() -> None:
    st.set_page_config(layout="wide")
    asked = st.query_params
    n_layers, n_heads, n_tokens = (int(asked.get(name, 8)) for name in ("layers", "heads", "tokens"))
    views, state = grid_views(n_layers, n_heads, n_tokens), st.session_state
    state.setdefault("chosen", 0)
    if st.button("Next head"):
        state["chosen"] = (state["chosen"] + 1) % (n_layers * n_heads)
    selected = divmod(state["chosen"], n_heads)
    st.text(f"chosen {selected[0]} {selected[1]}")
    if asked.get("drawing") == "plotly":
        st.plotly_chart(plotly_grid(views, selected), key="grid")
        return
    bring_canvas()

    def choose(clicked: HeadChoice) -> None:
        state["chosen"] = clicked.layer * n_heads + clicked.head

    show_grid(attention_grid(views, selected=selected), key="grid", on_click=choose)


if __name__ == "__main__":
    main()
