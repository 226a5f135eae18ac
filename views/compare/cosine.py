"""Two sentences by an encoder without a head: the cosine of their vectors, and which pairs of tokens it comes from."""

import numpy as np
import streamlit as st

from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from transformer.layers.embedding_space import parts_of_cosine
from ui.shell.page import Page
from ui.show.drawings import show_map
from ui.show.figures import show_formula, show_source
from ui.words.texts import as_plain
from views.compare.run_comparison import Side, map_height


def show_cosine(p: Page, first: Side, second: Side) -> None:
    """The number, and the map of its parts: rows are the tokens of A, columns those of B; their sum is the cosine."""
    text, parts = p.text, parts_of_cosine(first.trace, second.trace)
    tokens = [side.trace.tokens("encoder") for side in (first, second)]
    row, column = np.unravel_index(parts.argmax(), parts.shape)
    st.markdown(
        text["cosine"].format(
            cosine=three_digits(float(parts.sum())),
            share=three_digits(float(parts[row, column])),
            one=as_plain(tokens[0].displays[row]),
            other=as_plain(tokens[1].displays[column]),
        )
    )
    show_map(
        value_map(
            parts,
            row_labels=list(tokens[0].labels),
            column_labels=list(tokens[1].labels),
            row_title="A",
            column_title="B",
            title=text["cosine_map"],
            value_name=text["cosine_value"],
            height=map_height(),
        ),
        key="compare cosine",
    )
    show_formula(text["cosine_formula"], caption=text[f"cosine_{p.checkpoint.config.pooling}"])
    show_source(parts_of_cosine)
