"""The Embeddings page of a vision model: no rows are looked up, the pixels are projected to a vector."""

import pandas as pd
import streamlit as st

from charts.canvas.value_map import value_map
from charts.toolkit.numbers import latex_notation, number
from charts.toolkit.style import three_digits
from transformer.pictures.vision_transformer import PatchEmbedding
from ui.page.page import Page
from ui.shell import choice
from ui.show.drawings import show_map
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from ui.words.texts import as_plain


def patch_embedding(p: Page) -> None:
    """Draw the vectors of all patches, one component as a sum of products, and the matrix E."""
    text, tokens = p.text, p.trace.tokens(p.focus.stack)
    vectors, width = p.trace.values("encoder.embedding.token"), p.checkpoint.config.d_model
    token, table = tokens[p.focus.token], p.checkpoint.model.encoder.embedding.table
    if not (token.special or p.reads_files):
        first = text["first_patch"]
        st.markdown(first.format(pixels=len(token.pixels), token=as_plain(token.display), width=width))
    show_map(
        value_map(
            vectors,
            row_labels=tokens.labels,
            column_labels=tuple(map(str, range(width))),
            row_title=text["patch"],
            column_title=text["dimension"],
            title=text["vectors"],
            chosen_row=p.focus.token,
            height=430,
        ),
        key="patch vectors",
    )
    st.caption(text["vectors_caption"].format(tokens=len(tokens), width=width))
    if token.special:
        st.markdown(text["class_vector"].format(token=as_plain(token.display)))
    if p.reads_files:
        show_formula(r"x_c = \sum_k E_{c,k}\, p_k + b_c", caption=text["file_caption"].format(width=width))
        st.markdown(text["no_table"])
        return
    if not token.special:
        channel = choice.number(text["dimension"], 0, width - 1, 0, key="patch channel", width=200)
        weights = table.projection.weight[channel].tolist()
        bias = table.projection.bias[channel].item()
        pairs = zip(weights, token.pixels, strict=True)
        products = " + ".join(rf"{_bracketed(w)} \cdot {latex_notation(three_digits(x))}" for w, x in pairs)
        show_formula(
            rf"x_{{{channel}}} = \sum_k E_{{{channel},k}}\, p_k + b_{{{channel}}} = {products} + {_bracketed(bias)}"
            rf" = {latex_notation(number(f'{float(vectors[p.focus.token, channel]):.6g}'))}",
            caption=text["projection_caption"].format(
                patch=as_plain(token.display), width=width, pixels=len(token.pixels)
            ),
        )
    rows = {f"E[:, {k}]": column for k, column in enumerate(table.projection.weight.T.tolist())}
    show_table(pd.DataFrame({**rows, "b": table.projection.bias.tolist()}), name="patch-projection", height=240)
    st.markdown(text["no_table"])
    show_source(PatchEmbedding)
    show_snippet(
        "patches",
        p.preamble
        + "\nimport torch\n\nembedding = checkpoint.model.encoder.embedding.table\n"
        + f"id = trace.tokens('encoder')[{p.focus.token}].id\n"
        + f"recorded = torch.tensor(trace.values('encoder.embedding.token')[{p.focus.token}])\n"
        + "with torch.no_grad():\n    print(embedding(torch.tensor([[id]]))[0, 0] - recorded)\n",
    )


def _bracketed(value: float) -> str:
    written = latex_notation(three_digits(value))
    return f"({written})" if value < 0 else written
