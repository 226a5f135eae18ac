"""The input and the output of the model, with the probability of the output."""

import streamlit as st

from charts.toolkit.numbers import latex_notation
from charts.toolkit.style import three_digits, three_digits_alike
from transformer.text.tokenizer import BLANK
from ui.lab.next_sentence_class import next_sentence_chips, next_sentence_line
from ui.lab.uncertain_output import uncertain_output
from ui.page.page import Page
from ui.shell.focus import Focus
from ui.shell.picture import show_picture
from ui.shell.selectors import work_of
from ui.show.chips import Chip, ChipRow, chips
from ui.words.once_a_run import once_a_run
from ui.words.texts import as_plain, common
from views.overview.overview_view_model import OverviewViewModel, overview_view_model
from views.overview.tour import offer_tour


def view_model_of(p: Page) -> OverviewViewModel:
    """Build a page's view model once per run: a fragment, which the session keeps, holds no trace."""
    return _view_model_of(p.name, p.focus)


@once_a_run
def _view_model_of(name: str, focus: Focus) -> OverviewViewModel:
    return overview_view_model(Page(name, focus).trace)


def show_answer(p: Page, view_model: OverviewViewModel) -> None:
    """Show the output, large; and the image that the model reads, unless the figure below draws it."""
    text, answer = p.text, view_model.answer
    size = "####" if len(answer.text) < 64 else ""
    found = view_model.next_sentence
    is_class = found is not None and not answer.parts  # two sentences without a blank
    work = "classifier" if is_class else work_of(p.checkpoint.config)
    written = text["forced"] if p.trace.forced else text[f"answers.{work}"]
    output = _output(p, view_model)
    with st.container(horizontal=True, horizontal_alignment="distribute", key="answer", gap="medium"):
        if p.reads_files:
            show_picture(p.focus.sentence, p.checkpoint.config)
        with st.container(gap=None):
            if p.masked is not None:
                written = text["masked_word"].format(word=as_plain(p.masked.text))
            uncertain = uncertain_output(p)
            if uncertain is not None and p.masked is not None and len(answer.parts) == 1:
                word = as_plain(answer.parts[0].display.removeprefix("·"))  # not the masked one
                written = common("uncertain.masked", written=written, answer=word, probability=uncertain[0])
            elif uncertain is not None and view_model.least_sure is not None:
                written = common("uncertain.least", written=written, word=as_plain(view_model.least_sure))
            elif uncertain is not None:
                written = common("uncertain.briefly", written=written, probability=uncertain[0])
            st.caption(written)
            st.markdown(f"{size} {output}")
            if view_model.expects:
                st.caption(text["expects"])
            if found is not None:
                st.markdown(next_sentence_line(found))
        offer_tour(p)


def _output(p: Page, view_model: OverviewViewModel) -> str:
    """Return the output as Markdown; of a sentence with blanks, only what fills them is coloured."""
    answer, found = view_model.answer, view_model.next_sentence
    output = answer.text
    if found is not None and not answer.parts:  # two sentences without a blank
        output = found.name
    elif view_model.output_kind == "vector":
        output = p.text["vector"].format(width=p.checkpoint.config.d_model)
    elif view_model.output_kind == "blanks" and answer.parts:
        given = [as_plain(part) for part in BLANK.split(" ".join(p.sentence.split()))]
        filled = [f":primary[**{_one_line(part.display.removeprefix('·'))}**]" for part in answer.parts]
        if len(given) == len(filled) + 1:
            pairs = zip(given, [*filled, ""], strict=True)
            return "".join(piece for pair in pairs for piece in pair)
    empty = p.text["empty_answer"] if view_model.expects else common("effect.empty")
    return f":primary[{_one_line(output) or empty}]"


def _one_line(text: str) -> str:
    """Return a typed text as Markdown that shows exactly these words on one line."""
    return as_plain(" ".join(text.split()))


def show_certainty(p: Page, view_model: OverviewViewModel) -> None:
    """Show the probability of the output, token by token."""
    text, answer = p.text, view_model.answer
    st.markdown(f"#### {text['sure']}")
    if (found := view_model.next_sentence) is not None:
        next_sentence_chips(found)
        st.caption(common("next_sentence.both"))
    if not answer.parts:
        st.caption(text["no_blank"])
        return
    kind = "" if view_model.output_kind == "text" else f"_{view_model.output_kind}"
    with st.container(horizontal=True):
        help = text[f"probability_help{kind}"]
        st.metric(text["probability"], three_digits(answer.probability), help=help)
        if len(answer.parts) > 1:
            st.metric(text["mean"], three_digits(answer.mean_probability), help=text[f"mean_help{kind}"])
    parts = view_model.parts
    shares = three_digits_alike(part.probability for part in parts)
    cards = [Chip(part.display, share, share=part.probability) for part, share in zip(parts, shares, strict=True)]
    chips([ChipRow("", tuple(cards))], key="answer tokens")
    st.caption(text[f"bars{kind}"])


def probability_formula(view_model: OverviewViewModel, name: str) -> str:
    """Return the product of all tokens' probabilities as LaTeX, without the middle of a long one."""
    answer = view_model.answer
    factors = [latex_notation(three_digits(part.probability)) for part in answer.parts]
    if len(factors) > 8:
        factors = [*factors[:4], r"\dots", *factors[-2:]]
    product = r" \cdot ".join(factors)
    steps = rf"\prod_{{t=1}}^{{{len(answer.parts)}}} p(y_t \mid y_{{<t}})"
    lines = rf"p(\text{{{name}}}) &= {steps} \\ &= {product} = {latex_notation(three_digits(answer.probability))}"
    return rf"\begin{{aligned}} {lines} \end{{aligned}}"
