"""The same sentence early and late in training, side by side, above the curves."""

from collections.abc import Sequence

import streamlit as st

from charts.canvas.attention_maps import attention_map, predicted_rows
from transformer.heads.roles_through_training import training_steps
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.presentation.presenter import is_presenting
from ui.show.drawings import show_map
from ui.words.texts import PageText
from views.training.curves import curves
from views.training.moments import moments_at, say_what_is_broken
from views.training.time_lapse import show_outputs, without_snapshots
from views.training.time_lapse_words import change, step_name, step_names
from views.training.training_view_model import training_view_model

_HEIGHT, _PRESENTED_HEIGHT = 280, 230


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
    names = step_names(shown.moments, p.text, card=p.checkpoint.card)
    titles = [p.text["early_step"].format(step=name) for name in names]
    rows, height = predicted_rows(p.trace, shown.location.kind), _PRESENTED_HEIGHT if is_presenting() else _HEIGHT
    with st.container(gap=None):  # close together, so that the maps end on the first screen
        show_outputs(p, shown.early, shown.late, titles=(titles[0], titles[1]))
        st.markdown(change(shown, p.text, card=p.checkpoint.card))
        with st.grid(2, min_column_width=330):
            for index, (moment, view) in enumerate(zip(shown.moments, shown.views, strict=True)):
                with st.container(gap="xsmall"):
                    drawn = attention_map(view, head=shown.location.head, shifted_labels=rows, height=height)
                    title = p.text["early_map"].format(
                        step=step_name(moment, p.text), layer=shown.location.layer, head=shown.location.head
                    )
                    show_map(drawn.with_metadata(title=title), key=f"training map {index}")
    curves(p)
