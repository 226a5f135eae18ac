"""How this model encodes positions, in one line."""

import streamlit as st

from ui.words.texts import PageText
from views.positions.positions_view_model import PositionsViewModel


def say_scheme(view_model: PositionsViewModel, text: PageText) -> None:
    """Write a line that names the scheme of this stack, and what else encodes positions in it."""
    scheme = view_model.scheme
    if scheme == "unknown":
        st.caption(text["not_established"])
        return
    lines = [text["nothing_added"] if scheme == "none" else text["own"].format(scheme=text[scheme])]
    lines += [text[f"also_{kind}"] for kind in view_model.checkpoint.config.kinds_in(view_model.stack)[1:]]
    if view_model.layers_without:
        lines.append(text["layers_without"].format(layers=", ".join(map(str, view_model.layers_without))))
    st.caption(" ".join(lines))
