"""Overview: the sentence moving through the model, the model as blocks, and its output."""

import streamlit as st

from ui.page.below import below_the_picture
from ui.page.living_picture import living_picture
from ui.page.page import page
from views.overview.diagram import model_diagram
from views.overview.model_output import show_answer, view_model_of
from views.overview.more import show_more

with page("overview", strip=False) as p:
    p.say_notes()
    show_answer(p, view_model_of(p))
    living_picture(p)
    st.markdown(f"#### {p.text['blocks']}")
    shape = {"tokens": len(p.trace.tokens(p.trace.stacks[-1])), "width": p.checkpoint.config.d_model}
    st.caption(p.text["diagram_hint"].format(**shape))
    model_diagram(p.checkpoint.config, p.trace, layer=p.focus.layer)
    below_the_picture(lambda: show_more(p))
