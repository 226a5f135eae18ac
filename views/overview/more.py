"""The part of Overview below the first screen: probabilities, next pages, sizes, code."""

import streamlit as st

from charts.toolkit.numbers import whole
from transformer.predictions.answer_probabilities import read_answer
from transformer.runs.trace_files import trace_to_bytes
from ui.page.page import Page
from ui.shell.navigation import GROUPS, pages_of
from ui.shell.selectors import text_for
from ui.show.figures import show_formula, show_snippet, show_source
from ui.words.texts import page_text
from views.overview.model_output import probability_formula, show_certainty, view_model_of
from views.overview.overview_view_model import OverviewViewModel

_CERTAINTY_WIDTH = 560  # pixels; the remaining width is for the links


def show_more(p: Page) -> None:
    """Draw that part of the page."""
    view_model = view_model_of(p)
    with st.container(horizontal=True, gap="large"):  # columns would stay side by side in a narrow window
        with st.container(width=_CERTAINTY_WIDTH):
            show_certainty(p, view_model)
        with st.container(width="stretch"):
            _show_next_pages(p)
    st.markdown(f"#### {p.text['size']}")
    _show_size(p, view_model)
    if view_model.output_kind == "text" and view_model.answer.parts:
        formula = probability_formula(view_model, p.text["formula_answer"])
        show_formula(formula, caption=p.text["formula_caption"])
    show_source(type(p.checkpoint.model), read_answer)
    show_snippet(
        "overview",
        p.preamble
        + "\nfrom transformer.predictions.answer_probabilities import read_answer\n\n"
        + "answer = read_answer(trace)\n"
        + "print(answer.probability)\nprint(answer.text)\n"
        + "for part in answer.parts:\n    print(part.display, part.probability)\n"
        + "for name in trace.names():\n    print(name, trace[name].axes, trace[name].shape)\n",
    )


def _show_next_pages(p: Page) -> None:
    """List the other pages of the first group, with their questions, in the order of the forward pass."""
    existing = pages_of(p.checkpoint.config)
    names = [entry.name for entry in next(iter(GROUPS.values()))[1:]]
    if p.encodes_sentences:
        names.append("compare")  # it shows what such a model is for
    st.markdown(f"#### {p.text['next']}")
    for name in names:
        if name in existing:
            with st.container(gap=None):
                st.page_link(existing[name], label=f"**{existing[name].title}**")
                st.caption(text_for(page_text(name), p.checkpoint.config).question)


def _show_size(p: Page, view_model: OverviewViewModel) -> None:
    """Show the model's size and the time of one pass."""
    text = p.text
    with st.container(horizontal=True):
        st.metric(text["numbers"], whole(view_model.n_numbers), help=text["numbers_help"])
        st.metric(text["parameters"], whole(p.checkpoint.model.n_parameters), help=text["parameters_help"])
    st.download_button(
        text["whole_trace"],
        data=lambda: trace_to_bytes(p.trace),  # megabytes, created only on request
        file_name=f"{p.checkpoint.name}-trace.safetensors",
        mime="application/octet-stream",
        icon=":material/download:",
        help=text["whole_trace_help"],
        on_click="ignore",
    )
