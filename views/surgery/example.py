"""The effect of removing one head, shown before the reader has changed anything."""

import streamlit as st

from charts.toolkit.style import signed
from transformer.interventions.head_importance import Importance
from transformer.runs.edit_specs import EditSpec
from ui.compute.store import store
from ui.lab.effects import show_difference
from ui.lab.experiments import experiment_with, tried
from ui.shell.page import Page
from views.surgery import edit_list

_WANTED = "surgery example: clicked"


def keep_wanted(p: Page) -> None:
    """Remove the head whose button was clicked, or wait for that of a sentence typed just before."""
    sentence, spec = st.session_state.get(_WANTED, ("", ""))
    if edit_list.specs():
        st.session_state.pop(_WANTED, None)
    elif spec and sentence == p.focus.sentence:
        del st.session_state[_WANTED]
        edit_list.add(spec)


def _want(sentence: str, spec: str) -> None:
    """Remember the click and the sentence of the button, which a typed sentence may replace (a callback)."""
    st.session_state[_WANTED] = (sentence, spec)


def show_example(p: Page, found: Importance) -> None:
    """Show the output without a head that the output needs, and a button that removes it."""
    spec = store.get(p.run, "surgery example", lambda: needed_head(p, found))
    if st.session_state.pop(_WANTED, None):  # clicked beside another sentence, which was still on the screen
        edit_list.add(spec)
        st.rerun()
    effect, text = experiment_with(p.run, (spec,)), p.text
    with st.container(border=True, gap="xsmall", key="example removal"):
        head = edit_list.describe(EditSpec.parse(spec), text)
        before, after = effect.answer_before, effect.answer_after
        if before.text == after.text:
            st.markdown(text["example_same"].format(head=head, change=signed(effect.change)))
        else:
            st.markdown(text["example"].format(head=head))
            show_difference(p, before, after)
        st.button(text["example_button"], icon=":material/content_cut:", on_click=_want, args=(p.focus.sentence, spec))


def needed_head(p: Page, found: Importance) -> str:
    """Return the removal, as text, of the most important head without which the output changes.

    Heads are tried in order of how much their removal lowers log p. If the output stays the same without each of them,
    the first one is returned.
    """
    ranked = sorted(found.measured, key=lambda one: one.change)
    specs = [f"zero:{head.stack}.{head.layer}.{head.kind}.{head.head}" for head in (one.place for one in ranked)]
    changing = (spec for spec, _, is_other in tried(p.run, ((spec, (spec,)) for spec in specs)) if is_other)
    return next(changing, specs[0])
