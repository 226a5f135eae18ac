"""The same sentence early and late in training, side by side, above the curves."""

import math
from collections.abc import Sequence

import streamlit as st

from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.toolkit.style import percent_digits
from transformer.errors import CheckpointError
from transformer.heads.roles_through_training import training_steps
from ui.compute.loading import load_history
from ui.shell.choice import chosen_option, one_of
from ui.shell.page import Page
from ui.shell.presentation.presenter import is_presenting
from ui.show.drawings import show_map
from ui.words.texts import PageText
from views.training.curves import curves, dev_losses
from views.training.moments import moments_at, say_what_is_broken
from views.training.time_lapse import without_snapshots
from views.training.time_lapse_words import change, likely, mark_shared_words, title, when
from views.training.training_view_model import TrainingViewModel, training_view_model

_HEIGHT, _PRESENTED_HEIGHT = 280, 195
_STYLE = """
.st-key-training-outputs { padding-block: 0.5rem; }
.st-key-training-outputs :is(h4, h5) { padding-top: 0; }
.st-key-training-moment { display: none; }
/* On a phone the sentence comes first, and one moment at a time is shown: a switch compares them in place. */
@media (max-width: 40rem) {
  .st-key-training-moment { display: block; order: -1; margin-block: 0.3rem; }
  .st-key-training-pair > :has(> .stMarkdown) { order: -2; }
  .st-key-training-outputs > :nth-child(HIDDEN), .st-key-training-half-INDEX { display: none; }
  .st-key-training-outputs > * { width: 100%; flex: none; }
  .st-key-training-outputs h4 { font-size: 0.95rem; }
  .st-key-training-outputs h5 { font-size: 1rem; }
}
"""


def choose_section(p: Page, sections: Sequence[str]) -> str:
    """Choose the section; without snapshots, the first one is called "Curves"."""
    has_snapshots = bool(training_steps(p.checkpoint))

    def name(text: PageText, section: str) -> str:
        return text["curves_alone" if section == "early" and not has_snapshots else f"section_{section}"]

    return chosen_option(
        p.text, "section", sections, key="training section", words=name, wrap=True, label_visibility="collapsed"
    )


def early_and_late(p: Page) -> None:
    """Show both outputs, one sentence about what changed, the maps of one head, and the curves."""
    steps = training_steps(p.checkpoint)
    if not steps:
        curves(p)
        st.caption(without_snapshots(p))
        return
    first = next((step for step in steps[:-1] if len(moments_at(p, (step, steps[-1]))) == 2), None)
    for step in steps[: -1 if first is None else steps.index(first)]:
        say_what_is_broken(p, (step, steps[-1]))
    if first is None:
        curves(p)
        return
    shown = training_view_model(moments_at(p, (first, steps[-1])))
    rows, height = predicted_rows(p.trace, shown.location.kind), _PRESENTED_HEIGHT if is_presenting() else _HEIGHT
    pair, card = (shown.early, shown.late), p.checkpoint.card
    with st.container(gap=None, key="training pair"):  # close together, so that the maps end on the first screen
        _outputs(p, shown)
        st.markdown(change(shown, p.text, card=card))
        _choose_moment(p.text["section_early"], [when(moment, p.text, card=card) for moment in pair])
        with st.grid(2, min_column_width=330):
            for index, (moment, view) in enumerate(zip(pair, shown.views, strict=True)):
                with st.container(gap="xsmall", key=f"training half {index}"):
                    drawn = attention_map(
                        view, head=shown.location.head, shifted_labels=rows, of_other_output=True, height=height
                    )
                    show_map(
                        # The pattern is what counts; a number in every cell would hide it.
                        drawn.with_metadata(title=when(moment, p.text, card=card), numbered=[]),
                        key=f"training map {index}",
                    )
    curves(p)


def _choose_moment(label: str, names: Sequence[str]) -> None:
    """Draw the switch between the two moments, of which a phone shows one."""
    options = {moment: [name] for moment, name in zip(("early", "late"), names, strict=True)}
    chosen = one_of(label, options, "late", key="training moment", label_visibility="collapsed")
    hidden = 1 if chosen == "early" else 0
    st.html(f"<style>{_STYLE.replace('HIDDEN', str(hidden + 1)).replace('INDEX', str(hidden))}</style>")


def _outputs(p: Page, shown: TrainingViewModel) -> None:
    """Show both outputs below their titles, or how probable the text was where the model writes nothing."""
    pair = (shown.early, shown.late)
    with st.container(border=True, horizontal=True, gap="medium", key="training outputs"):
        for moment, other in zip(pair, reversed(pair), strict=True):
            with st.container(width="stretch", gap=None):
                st.markdown(f"#### {title(moment, p.text, card=p.checkpoint.card)}")
                if moment.n_tokens:
                    st.markdown(f"##### {mark_shared_words(moment.text, other.text)}")
                    st.caption(likely(moment, other, p.text), help=p.text["time_likely_help"])
                elif not math.isnan(moment.typed_log_probability):
                    key = "early_typed" if p.checkpoint.config.has_decoder else "early_predicted"
                    share = percent_digits(math.exp(moment.typed_log_probability))
                    st.markdown(p.text[key].format(probability=share))
    if not shown.late.n_tokens and (fell := _losses(p)):
        st.markdown(p.text["early_better"].format(**fell))


def _losses(p: Page) -> dict[str, str]:
    try:
        history = load_history(p.focus.checkpoint)
    except CheckpointError:  # the curves below report the problem
        return {}
    return {} if history is None else dev_losses(history)
