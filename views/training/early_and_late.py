"""The same sentence before and after training, side by side, above the curves."""

import math
from collections.abc import Sequence

import streamlit as st

from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.toolkit.style import percent_digits
from transformer.heads.roles_through_training import Moment
from transformer.predictions.answer_probabilities import PredictionRows, prediction_rows
from transformer.text.tokenizer import BLANK
from ui.lab.uncertain_output import uncertain_output
from ui.shell.choice import chosen_option, one_of
from ui.shell.long_texts import say_long_text
from ui.shell.page import Page
from ui.shell.presentation.presenter import is_presenting
from ui.show.drawings import show_map
from ui.words.texts import PageText, as_plain, common
from views.training.curves import curves
from views.training.moments import moments_at, say_what_is_broken, shown_steps
from views.training.time_lapse import typed_probability, without_snapshots
from views.training.time_lapse_words import beginning, change, note, probability, shortened, titles, when
from views.training.training_view_model import TrainingViewModel, telling_row, training_view_model

_HEIGHT, _PRESENTED_HEIGHT = 280, 195
_WORDS_BEFORE = 4  # of a typed text, before the word that the model predicts
_STYLE = """
.st-key-training-outputs { padding-block: 0.4rem; margin-bottom: 0.4rem; }
.st-key-training-outputs :is(h4, h5) { padding-top: 0; }
.st-key-training-moment { display: none; }
/* On a phone the outputs are below each other, and one map at a time is shown: a switch compares them in place.
   The texts come last. */
@media (max-width: 40rem) {
  .st-key-training-pair > :has(> .stMarkdown) { order: 1; }
  .st-key-training-moment { display: block; margin-block: 0.3rem; }
  .st-key-training-half-INDEX { display: none; }
  .st-key-training-outputs { gap: 0.5rem; }
  .st-key-training-outputs > * { width: 100%; flex: none; }
  .st-key-training-outputs h4 { font-size: 0.95rem; }
  .st-key-training-outputs h5 { font-size: 0.85rem; }
  .st-key-training-outputs [data-testid=stCaptionContainer] p { font-size: 0.8rem; line-height: 1.3; }
}
"""


def choose_section(p: Page, sections: Sequence[str]) -> str:
    """Choose the section; without an earlier model to compare with, the first one is "Curves"."""
    compares = bool(shown_steps(p.checkpoint))

    def name(text: PageText, section: str) -> str:
        return text["curves_alone" if section == "early" and not compares else f"section_{section}"]

    return chosen_option(
        p.text, "section", sections, key="training section", words=name, wrap=True, label_visibility="collapsed"
    )


def early_and_late(p: Page) -> None:
    """Show both outputs, one sentence about what changed, the maps of one head, and the curves."""
    steps = shown_steps(p.checkpoint)
    if not steps:
        curves(p)
        st.caption(without_snapshots(p))
        return
    if p.reads_long_text:  # both maps, and the roles of all heads, need every layer
        st.caption(say_long_text(p.run, "page"))
        curves(p)
        return
    first = next((step for step in steps[:-1] if len(moments_at(p, (step, steps[-1]))) == 2), None)
    for step in steps[: -1 if first is None else steps.index(first)]:
        say_what_is_broken(p, (step, steps[-1]))
    if first is None:
        curves(p)
        return
    shown = training_view_model(moments_at(p, (first, steps[-1])))
    rows, height = predicted_rows(p.trace, shown.location.kind), _PRESENTED_HEIGHT if is_presenting() else _HEIGHT
    names = [when(moment, p.text, shown=shown, card=p.checkpoint.card) for moment in (shown.early, shown.late)]
    with st.container(gap=None, key="training pair"):  # close together, so that the maps end on the first screen
        _outputs(p, shown)
        st.markdown(change(shown, p.text, predicted=p.trace.prediction))
        _choose_moment(p.text["section_early"], names)
        with st.grid(2, min_column_width=330):
            for index, (name, view) in enumerate(zip(names, shown.views, strict=True)):
                with st.container(gap="xsmall", key=f"training half {index}"):
                    drawn = attention_map(
                        view, head=shown.location.head, shifted_labels=rows, of_other_output=True, height=height
                    )
                    # The pattern is what counts; a number in every cell would hide it.
                    show_map(drawn.with_metadata(title=name, numbered=[]), key=f"training map {index}")
        if origin := note(shown, p.text, card=p.checkpoint.card):
            st.caption(origin)
    curves(p)


def _choose_moment(label: str, names: Sequence[str]) -> None:
    """Draw the switch between the two moments, of which a phone shows one."""
    options = {moment: [name] for moment, name in zip(("early", "late"), names, strict=True)}
    chosen = one_of(label, options, "late", key="training moment", label_visibility="collapsed")
    st.html(f"<style>{_STYLE.replace('INDEX', '1' if chosen == 'early' else '0')}</style>")


def _outputs(p: Page, shown: TrainingViewModel) -> None:
    """Show both outputs below their titles, each with a probability."""
    question, card = prediction_rows(p.trace), p.checkpoint.card
    with st.container(border=True, horizontal=True, gap="medium", key="training outputs"):
        for moment, name in zip((shown.early, shown.late), titles(shown, p.text, card=card), strict=True):
            with st.container(width="stretch", gap=None):
                st.markdown(f"##### {name}")
                if output := _output(p, shown, moment, question):
                    st.markdown(f"#### {output}")
                if said := _probability(p, shown, moment, question):
                    mistaken = moment is shown.late and uncertain_output(p) is not None
                    st.caption(f"{said} {common('uncertain.in_brackets')}" if mistaken else said)


def _output(p: Page, shown: TrainingViewModel, moment: Moment, question: PredictionRows) -> str:
    """Return what the model predicts at a moment, as Markdown; "" where it is not asked anything."""
    config, predicted = p.checkpoint.config, [word.removeprefix("·") for word, _ in moment.predicted]
    if question.everywhere:
        row = telling_row(shown, question.displays)
        if row is None or not config.has_decoder:
            return ""
        read = p.checkpoint.tokenizer.decode(p.trace.target.ids[: question.rows[row] + 1]).split()
        cut = "… " if len(read) > _WORDS_BEFORE else ""
        return f"{as_plain(cut + ' '.join(read[-_WORDS_BEFORE:]))} → :primary[**{as_plain(predicted[row])}**]"
    if config.n_classes:
        return f":primary[**{as_plain(predicted[0])}**]" if predicted else ""
    given = [as_plain(part) for part in BLANK.split(" ".join(p.sentence.split()))]
    if not config.has_decoder and len(given) == len(predicted) + 1:
        filled = [f":primary[**{as_plain(word)}**]" for word in predicted]
        return "".join(piece for pair in zip(given, [*filled, ""], strict=True) for piece in pair)
    written = _continuation(p, moment.text)
    if moment.has_random_weights and moment.is_cut:
        return as_plain(beginning(written))
    return as_plain(shortened(written, _continuation(p, shown.late.text))) or common("effect.empty")


def _continuation(p: Page, text: str) -> str:
    """Return an output without the prompt that it continues."""
    return text if p.checkpoint.config.has_encoder else text.removeprefix(p.sentence).strip()


def _probability(p: Page, shown: TrainingViewModel, moment: Moment, question: PredictionRows) -> str:
    """Return how probable the finished model's output, or the text, is; "" without a prediction."""
    config = p.checkpoint.config
    if question.everywhere:
        return "" if math.isnan(moment.typed_log_probability) else typed_probability(p, moment)
    if not moment.n_tokens:
        return ""
    if len(question.ids) > 1 or config.has_decoder:
        key = "early_given" if p.trace.forced else "early_this" if moment is shown.late else "early_other"
        return p.text[key].format(probability=probability(moment))
    word = as_plain(question.displays[0].removeprefix("·"))
    said = p.text["early_choice"].format(word=word, probability=probability(moment))
    if config.n_classes and moment.has_random_weights:
        said += " " + p.text["early_guess"].format(probability=percent_digits(1 / config.n_classes))
    return said
