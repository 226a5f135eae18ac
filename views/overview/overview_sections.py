"""The sections of Overview: the output with its certainty, next pages, sizes, the tour."""

from collections.abc import Sequence

import streamlit as st

from charts.toolkit.numbers import latex_notation, whole
from charts.toolkit.style import three_digits, three_digits_alike
from transformer.config import NEXT_SENTENCE
from transformer.predictions.answer_probabilities import (
    Answer,
    least_probable_word,
    prediction_rows,
    read_answer,
    shown_classes,
)
from transformer.runs.next_sentence import NextSentenceAnswer, next_sentence
from transformer.runs.trace_files import trace_to_bytes
from transformer.text.tokenizer import BLANK
from ui.compute.loading import checkpoint_names
from ui.compute.store import store
from ui.page.page import Page
from ui.sections.uncertain_output import uncertain_output
from ui.shell.focus import opening_focus
from ui.shell.focus_controls import text_for, work_of
from ui.shell.guidance.guesses import score_of
from ui.shell.guidance.lesson_bar import begin_lesson, just_finished
from ui.shell.guidance.lessons import find_course
from ui.shell.navigation import GROUPS, pages_of
from ui.shell.openings import trained_on
from ui.shell.picture import show_picture
from ui.show.chips import Chip, ChipRow, chips
from ui.words.model_terms import next_sentence_line
from ui.words.texts import Marked, as_plain, common, language, plain_word
from views.overview.model_diagram import model_diagram

TOUR = "tour"  # in lessons/routes.toml
_CERTAINTY_WIDTH = 560  # pixels; the remaining width is for the links
_FACTORS, _LAST = 8, 2  # of the formula: most of them, and how many end a shortened one


# ---- the output -----------------------------------------------------------------------------------------------------


def answer(p: Page) -> None:
    """Show the output, large; and the image that the model reads, unless the figure below draws it."""
    found, pair, expects = _answer(p), next_sentence(p.trace), _expects(p)
    with st.container(horizontal=True, horizontal_alignment="distribute", key="answer", gap="medium"):
        if p.reads_files:
            show_picture(p.focus.sentence, p.checkpoint.config)
        with st.container(gap=None):
            st.caption(_introduction(p, found, is_no_text=expects or _is_class_of_pair(found, pair)))
            st.markdown(f"{'####' if len(found.text) < 64 else ''} {_output(p, found, pair, expects=expects)}")
            if expects:
                p.say("expects", small=True)
            if told := trained_on(p.focus.checkpoint):
                st.caption(as_plain(told))
            if pair is not None:
                st.markdown(next_sentence_line(pair))
        tour(p)


def _answer(p: Page) -> Answer:
    return p.calc(read_answer, p.trace, name="answer", shows=(".text", ".parts"))


def _writes(p: Page) -> bool:
    """Return whether the output is a text, not a class, a vector or the words of blanks."""
    return p.checkpoint.config.has_decoder and not p.encodes_sentences


def _expects(p: Page) -> bool:
    """Return whether a decoder adds nothing to the text, so that its predictions per token are shown."""
    return _writes(p) and prediction_rows(p.trace).everywhere


def _is_class_of_pair(found: Answer, pair: NextSentenceAnswer | None) -> bool:
    """Return whether the output is the class of two sentences without a blank."""
    return pair is not None and not found.parts


def _introduction(p: Page, found: Answer, *, is_no_text: bool) -> str:
    """Return a sentence on what the model does and, if its output is uncertain, on how probable that is."""
    work = "classifier" if is_no_text else work_of(p.checkpoint.config)
    written = p.md("forced") if p.trace.forced else p.md(f"answers.{work}")
    if p.masked is not None:
        written = p.md("masked_word", word=p.masked.text)
    if (uncertain := uncertain_output(p)) is None:
        return written
    if p.masked is not None and len(found.parts) == 1:
        word = plain_word(found.parts[0].display)  # not the masked one
        return p.md("unsure_of_word", written=written, answer=word, probability=uncertain[0])
    if _writes(p) and (word := least_probable_word(p.trace)) is not None:
        return p.md("unsure_of_text", written=written, word=word.display)
    return p.md("unsure", written=written, probability=uncertain[0])


def _output(p: Page, found: Answer, pair: NextSentenceAnswer | None, *, expects: bool) -> str:
    """Return the output as Markdown; of a sentence with blanks, only what fills them is coloured."""
    output = found.text
    if _is_class_of_pair(found, pair):
        output = pair.name
    elif p.encodes_sentences:
        output = p.words("vector", width=p.checkpoint.config.d_model)
    elif p.checkpoint.config.fills_blanks and (filled := colour_blanks(p.sentence, [t.display for t in found.parts])):
        return filled
    empty = p.text["empty_answer"] if expects else common("effect.empty")
    return f":primary[{_one_line(output) or empty}]"


def colour_blanks(sentence: str, tokens: Sequence[str]) -> str:
    """Return a sentence as Markdown with a coloured token in each blank; "" if their numbers differ.

    A token that does not begin with the dot of a space continues the word before its blank: "Sunday ___" → "Sundays".
    """
    texts = BLANK.split(" ".join(sentence.split()))
    if not tokens or len(texts) != len(tokens) + 1:
        return ""
    pieces = []
    for text, token in zip(texts, tokens, strict=False):
        before = text if token.startswith("·") else text.rstrip()
        pieces += [as_plain(before), f":primary[**{_one_line(token.removeprefix('·'))}**]"]
    return "".join([*pieces, as_plain(texts[-1])])


def _one_line(text: str) -> str:
    """Return a typed text as Markdown that shows exactly these words on one line."""
    return as_plain(" ".join(text.split()))


# ---- below the picture ----------------------------------------------------------------------------------------------


def blocks(p: Page) -> None:
    """Draw the model as blocks, with the shapes of this sentence."""
    st.markdown(f"#### {p.text['blocks']}")
    n_tokens = len(p.trace.tokens(p.trace.stacks[-1]))
    p.say("diagram_hint", small=True, tokens=n_tokens, width=p.checkpoint.config.d_model)
    model_diagram(p.trace, layer=p.focus.layer)


def more(p: Page) -> None:
    """Draw the probability of the output, links to the next pages, and how many numbers there are."""
    with st.container(horizontal=True, gap="large"):  # columns would stay side by side in a narrow window
        with st.container(width=_CERTAINTY_WIDTH):
            certainty(p)
        with st.container(width="stretch"):
            next_pages(p)
    size(p)
    if _writes(p) and _answer(p).parts:
        p.formula(probability_formula(_answer(p), p.text["formula_answer"]), "formula_caption")
    p.code(type(p.checkpoint.model))


def certainty(p: Page) -> None:
    """Show the probability of the output, token by token."""
    found = _answer(p)
    st.markdown(f"#### {p.text['sure']}")
    if (pair := next_sentence(p.trace)) is not None:
        shares = three_digits_alike(pair.probabilities)
        classes = zip(NEXT_SENTENCE, shares, pair.probabilities, strict=True)
        row = ChipRow("", tuple(Chip(name, share, share=value) for name, share, value in classes))
        chips([row], key="next sentence")
        st.caption(common("next_sentence.both"))
    if not found.parts:
        p.say("no_blank", small=True)
        return
    with st.container(horizontal=True):
        st.metric(p.text["probability"], three_digits(found.probability), help=p.md("probability_help"))
        if len(found.parts) > 1:
            st.metric(p.text["mean"], three_digits(found.mean_probability), help=p.md("mean_help"))
    parts = shown_classes(p.trace) if p.checkpoint.config.n_classes else found.parts
    shares = three_digits_alike(part.probability for part in parts)
    cards = [Chip(part.display, share, share=part.probability) for part, share in zip(parts, shares, strict=True)]
    chips([ChipRow("", tuple(cards))], key="answer tokens")
    p.say("bars", small=True)


def probability_formula(found: Answer, name: str) -> str:
    """Return the product of all tokens' probabilities as LaTeX, without the middle of a long one."""
    factors = [latex_notation(three_digits(part.probability)) for part in found.parts]
    if len(factors) > _FACTORS:
        factors = [*factors[: _FACTORS // 2], r"\dots", *factors[-_LAST:]]
    product = r" \cdot ".join(factors)
    steps = rf"\prod_{{t=1}}^{{{len(found.parts)}}} p(y_t \mid y_{{<t}})"
    lines = rf"p(\text{{{name}}}) &= {steps} \\ &= {product} = {latex_notation(three_digits(found.probability))}"
    return rf"\begin{{aligned}} {lines} \end{{aligned}}"


def next_pages(p: Page) -> None:
    """List the other pages of the first group, with their questions, in the order of the forward pass."""
    config = p.checkpoint.config
    existing = pages_of(config)
    names = [entry.name for entry in next(iter(GROUPS.values()))[1:]]
    if p.encodes_sentences:
        names.append("compare")  # it shows what such a model is for
    st.markdown(f"#### {p.text['next']}")
    for name in names:
        if name in existing:
            with st.container(gap=None):
                st.page_link(existing[name], label=f"**{existing[name].title}**")
                st.caption(text_for(name, config).question)


def size(p: Page) -> None:
    """Show how many numbers were learned and computed, and offer the whole trace."""
    st.markdown(f"#### {p.text['size']}")
    computed, learned = store.get(
        p.run, "numbers", lambda: (p.trace.activations.n_numbers, p.checkpoint.model.n_parameters)
    )
    with st.container(horizontal=True):
        st.metric(p.text["numbers"], whole(computed), help=p.md("numbers_help"))
        st.metric(p.text["parameters"], whole(learned), help=p.md("parameters_help"))
    st.download_button(
        p.text["whole_trace"],
        data=lambda: trace_to_bytes(p.trace),  # megabytes, created only on request
        file_name=f"{p.checkpoint.name}-trace.safetensors",
        mime="application/octet-stream",
        icon=":material/download:",
        help=p.md("whole_trace_help"),
        on_click="ignore",
    )


# ---- the tour: a lesson of a few stops over the living picture ------------------------------------------------------


def tour(p: Page) -> None:
    """Draw the button that starts the tour, or, after its end, the score and an invitation.

    Neither is drawn during a lesson, or if a checkpoint of the tour is missing.
    """
    found = find_course(TOUR, language())
    if found is None or p.focus.lesson or {step.focus["checkpoint"] for step in found.steps} - {*checkpoint_names()}:
        return
    if not just_finished(TOUR):
        with st.container(width="content"):
            label, icon = p.md("tour", minutes=found.minutes), ":material/tour:"
            if st.button(label, type="primary", icon=icon, help=found.aim, key="take the tour"):
                begin_lesson(found)
        return
    score, own = score_of(found), p.focus.sentence != opening_focus(p.focus.checkpoint).sentence
    said = p.md("tour_own" if own else "tour_finished")
    if score.answered:
        said = Marked(f"{said} {p.md('tour_score', first=score.first, count=score.answered)}")
    # In the rest of the row and in small type, so that the picture below stays where it was.
    with st.container(key="tour score", width="stretch", gap=None):
        st.markdown(f":small[:material/flag: {said}]")
        if st.button(p.text["tour_again"], type="tertiary", icon=":material/replay:", key="tour again"):
            begin_lesson(found)
