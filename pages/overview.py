"""Overview: the sentence on its way through the model, the model as blocks with the live shapes of this sentence, its
answer, and where parameters and time go."""

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import in_tex, whole
from charts.toolkit.style import three_digits, three_digits_alike
from charts.toolkit.words import in_words
from transformer.errors import InputError
from transformer.layers.costs import measured_costs
from transformer.predictions.answer_probabilities import Answer, answer_of, class_probabilities
from transformer.runs.trace_files import trace_to_bytes
from transformer.text.message import Message
from ui.compute.store import store
from ui.shell import choice, embedded
from ui.shell.below import below_the_picture
from ui.shell.navigation import GROUPS, pages
from ui.shell.page import Page, page
from ui.shell.picture import show_picture
from ui.shell.presentation.presenter import presenting
from ui.shell.selectors import text_for, work_of
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_figure, show_formula, show_snippet, show_source
from ui.show.living_picture import living_picture
from ui.words.catalogues import said
from ui.words.texts import as_plain, language, page_text, speaking
from views.overview.diagram import model_diagram
from views.overview.handout import check_length, handout
from views.overview.time_and_parameters_figure import time_and_parameters
from views.overview.tour import offer_tour

CERTAINTY_WIDTH = 560  # pixels; what remains of a window goes to the links beside it


def one_line(text: str) -> str:
    """A typed text as Markdown that shows exactly these words on one line."""
    return as_plain(" ".join(text.split()))


def show_answer(p: Page, answer: Answer) -> None:
    """What was typed and what came out, large."""
    size = "####" if max(len(p.focus.sentence), len(answer.text)) < 64 else ""
    with st.container(horizontal=True, horizontal_alignment="distribute", key="answer", gap="medium"):
        for caption, words in (
            (p.text["typed"], one_line(p.focus.sentence)),
            (
                p.text["forced"] if p.trace.forced else p.text[f"answers.{work_of(p.checkpoint.config)}"],
                f":primary[{one_line(answer.text) or p.text['empty_answer']}]",
            ),
        ):
            with st.container(width=310, gap=None):
                st.caption(caption)
                if p.reads_pictures and caption == p.text["typed"]:
                    show_picture(p.focus.sentence, p.checkpoint.config)
                else:
                    st.markdown(f"{size} {words}")
        with st.container(width="content"):
            offer_tour(p)


def show_certainty(p: Page, answer: Answer) -> None:
    """How likely the model finds its answer, token by token."""
    st.markdown(f"#### {p.text['sure']}")
    if not answer.parts:
        st.caption(p.text["no_blank"])
        return
    classes = p.checkpoint.config.n_classes
    kind = "" if p.checkpoint.config.has_decoder else "_class" if classes else "_blanks"
    with st.container(horizontal=True):
        help = p.text[f"probability_help{kind}"]
        st.metric(p.text["probability"], three_digits(answer.probability), help=help)
        if len(answer.parts) > 1:
            st.metric(p.text["mean"], three_digits(answer.mean_probability), help=p.text[f"mean_help{kind}"])
    parts = class_probabilities(p.trace) if classes else answer.parts
    shares = three_digits_alike(part.probability for part in parts)
    cards = [Chip(part.display, share, share=part.probability) for part, share in zip(parts, shares, strict=True)]
    chips([ChipRow("", tuple(cards))], key="answer tokens")
    st.caption(p.text[f"bars{kind}"])


def show_size(p: Page) -> None:
    """How much there is to look at."""
    numbers = p.trace.activations.n_numbers
    with st.container(horizontal=True):
        st.metric(p.text["numbers"], whole(numbers), help=p.text["numbers_help"])
        st.metric(p.text["parameters"], whole(p.checkpoint.model.n_parameters), help=p.text["parameters_help"])
    st.download_button(
        p.text["whole_trace"],
        data=lambda: trace_to_bytes(p.trace),  # megabytes, made only when somebody asks for it
        file_name=f"{p.checkpoint.name}-trace.safetensors",
        mime="application/octet-stream",
        icon=":material/download:",
        help=p.text["whole_trace_help"],
        on_click="ignore",
    )


def show_handout(p: Page) -> None:
    """This sentence's whole way as one file."""
    text, spoken, problem = p.text["handout"], language(), ""
    try:
        check_length(p.trace)
    except InputError as error:
        problem = said(error)

    def make() -> str:  # only when somebody asks for it, and then outside of the session's run
        with speaking(spoken):
            return handout(p.trace, p.focus)

    st.download_button(
        text["button"],
        data=make,
        file_name=f"{p.checkpoint.name}-handout.html",
        mime="text/html",
        icon=":material/article:",
        help=as_plain(problem) or text["button_help"],
        disabled=bool(problem),
        key="handout",
        on_click="ignore",
    )


def show_costs(p: Page) -> None:
    """Parameters and time of every block; measured, and Plotly loaded, only when somebody opens it."""
    with choice.fold(p.text["costs"], icon=":material/bar_chart:", key="costs") as costs:
        if not costs.open:
            return
        lengths = [len(p.trace.tokens(stack)) for stack in p.trace.stacks]  # the time depends on nothing else
        found = store.get(p.checkpoint, ("costs", *lengths), lambda: measured_costs(p.trace))
        table = pd.DataFrame(
            [{**vars(cost), "block": in_words(cost.block), "part": in_words(cost.part)} for cost in found]
        )
        writes = f" {p.text['costs_writing']}" if p.checkpoint.config.has_decoder else ""
        caption = p.text["costs_caption"] + writes
        show_figure(time_and_parameters(table), name="parameters-and-time", caption=caption)
        if [cost.parameters for cost in found if cost.part == Message("projection")] == [0]:
            st.caption(p.text["tied"])


def probability_formula(answer: Answer, name: str) -> str:
    """The product of all tokens' probabilities with this answer's numbers, the middle of a long one left out."""
    factors = [in_tex(three_digits(part.probability)) for part in answer.parts]
    if len(factors) > 8:
        factors = [*factors[:4], r"\dots", *factors[-2:]]
    product = r" \cdot ".join(factors)
    steps = rf"\prod_{{t=1}}^{{{len(answer.parts)}}} p(y_t \mid y_{{<t}})"
    lines = rf"p(\text{{{name}}}) &= {steps} \\ &= {product} = {in_tex(three_digits(answer.probability))}"
    return rf"\begin{{aligned}} {lines} \end{{aligned}}"


def show_next_steps(p: Page) -> None:
    """The other pages of the first group with the question that each answers, in the order of the forward pass."""
    existing = pages()
    st.markdown(f"#### {p.text['next']}")
    for entry in next(iter(GROUPS.values()))[1:]:
        if entry.name in existing:
            with st.container(gap=None):
                st.page_link(existing[entry.name], label=f"**{entry.title}**")
                text = page_text(entry.name)
                st.caption(text_for(text, p.checkpoint.config).question)


def show_more(p: Page, answer: Answer) -> None:
    """What is below the first screen."""
    with st.container(horizontal=True, gap="large"):  # columns would stay side by side on a narrow window
        with st.container(width=CERTAINTY_WIDTH):
            show_certainty(p, answer)
        with st.container(width="stretch"):
            show_next_steps(p)
    show_handout(p)
    st.markdown(f"#### {p.text['size']}")
    show_size(p)
    show_costs(p)
    if p.checkpoint.config.has_decoder and answer.parts:
        show_formula(probability_formula(answer, p.text["formula_answer"]), caption=p.text["formula_caption"])
    show_source(type(p.checkpoint.model), answer_of, measured_costs)
    show_snippet(
        "overview",
        p.preamble
        + "\nfrom transformer.predictions.answer_probabilities import answer_of\n\n"
        + "answer = answer_of(trace)\n"
        + "print(answer.probability)\nprint(answer.text)\n"
        + "for part in answer.parts:\n    print(part.display, part.probability)\n"
        + "for name in trace.names():\n    print(name, trace[name].axes, trace[name].shape)\n",
    )


with page("overview", strip=False) as p:
    for note in p.trace.notes:
        st.caption(f":material/info: {as_plain(said(note))}")
    answer = answer_of(p.trace)
    if not presenting():  # the picture says both, too
        show_answer(p, answer)
    living_picture(p)
    if not embedded.embedded():  # there one figure stands alone, and the blocks would be there first
        st.markdown(f"#### {p.text['blocks']}")
        model_diagram(p.checkpoint.config, p.trace, layer=p.focus.layer)
        st.caption(p.text["diagram_hint"])
    below_the_picture(lambda: show_more(p, answer))
