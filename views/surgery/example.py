"""The effect of removing one head, shown before the reader has changed anything."""

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

import streamlit as st

from charts.toolkit.numbers import percent
from charts.toolkit.style import three_digits
from transformer.interventions.experiment import Experiment
from transformer.interventions.head_importance import HeadImportance, Importance
from transformer.runs.edit_specs import EditSpec
from transformer.runs.head_places import Head, all_heads
from ui.compute.store import store
from ui.lab.effects import say_expectations, show_consequence
from ui.lab.experiments import experiment_with, tried
from ui.lab.uncertain_output import uncertainty_note
from ui.page.page import Page
from ui.shell import focus as shared_focus
from ui.shell.focus import is_at_the_opening, model_input
from views.surgery import edit_list
from views.surgery.surgery_view_model import measured_by

_WANTED, _NEEDED = "surgery example: clicked", "surgery example"
_CHOSEN = "surgery example: another head was chosen for"
_MOST = 8  # heads that are removed together


@dataclass(frozen=True)
class Example:
    """Heads whose removal is shown: one, or several if no single one changes the output.

    Attributes:
        heads: The removed heads.
        effect: The run compared with the run without them.
        needs_several: Whether it is known that the output stays the same without any single head.
        reason: The key of the sentence that says why this head is shown; "" if there is none.
        strongest: The head whose removal lowers log p most.
    """

    heads: tuple[Head, ...]
    effect: Experiment
    needs_several: bool = False
    reason: str = ""
    strongest: HeadImportance | None = None

    @property
    def specs(self) -> tuple[str, ...]:
        """The removals as edits."""
        return tuple(map(removal, self.heads))


def removal(head: Head) -> str:
    """Return the removal of a head as an edit."""
    return f"zero:{head.stack}.{head.layer}.{head.kind}.{head.head}"


def keep_wanted(p: Page) -> None:
    """Remove the heads whose button was clicked, or wait for those of a sentence typed just before."""
    sentence, specs = st.session_state.get(_WANTED, ("", ()))
    if edit_list.specs():
        st.session_state.pop(_WANTED, None)
    elif specs and sentence == p.sentence:
        del st.session_state[_WANTED]
        _remove(specs)


def _want(sentence: str, specs: tuple[str, ...]) -> None:
    """Remember the click and the sentence of the button, which a typed sentence may replace (a callback)."""
    st.session_state[_WANTED] = (sentence, specs)


def _remove(specs: tuple[str, ...]) -> None:
    for spec in specs:
        edit_list.add(spec)


def example_of(p: Page, found: Importance, selected: Head | None) -> Example:
    """Return the removal of the selected head, by default of one that changes the output."""
    if selected is not None:
        heads, needs_several = (selected,), False
    else:
        heads, needs_several = store.get(p.run, _NEEDED, lambda: needed_heads(p, found), wait="wait.remove")
    if st.session_state.pop(_WANTED, None):  # clicked beside another sentence, which was still on the screen
        _remove(tuple(map(removal, heads)))
        st.rerun()
    effect = experiment_with(p.run, tuple(map(removal, heads)))
    alone = not needs_several and selected is None
    reason = reason_for(heads[0], found, effect) if alone else ""
    return Example(heads, effect, needs_several, reason, min(found.measured, key=lambda one: one.change))


def at_example(p: Page, *, click: str) -> Page:
    """Return the page at the head of the example, unless the reader has chosen another one."""
    heads, _ = store.known(p.run, _NEEDED) or ((), False)
    chosen = click == "focus" or p.focus.lesson or st.session_state.get(_CHOSEN) == model_input(p.focus)
    if len(heads) != 1 or chosen or not is_at_the_opening(p.focus):
        return p
    there = copy(p)
    there.focus = replace(p.focus, **heads[0]._asdict())
    return there


def leave_example(p: Page) -> None:
    """Keep the head at which ``p`` is as that of all pages, once per sentence (a callback)."""
    if st.session_state.get(_CHOSEN) != model_input(p.focus):
        st.session_state[_CHOSEN] = model_input(p.focus)
        shared_focus.change(**{name: getattr(p.focus, name) for name in Head._fields})


def reason_for(head: Head, found: Importance, effect: Experiment) -> str:
    """Return the key of the sentence that says why this removal is shown; "" if it lowers nothing."""
    ranked = sorted(found.measured, key=lambda one: one.change)
    change = next(one.change for one in ranked if one.place == head)
    if change >= 0:
        return ""
    if head == ranked[0].place:
        return "example_lowers_most"
    if not effect.predicts_otherwise or ranked[0].predicts_otherwise is not False:
        return ""
    return "example_changes_prediction" if effect.asked.everywhere else "example_changes_output"


def needed_heads(p: Page, found: Importance) -> tuple[tuple[Head, ...], bool]:
    """Return the fewest heads without which the output changes, and whether it needs more than one.

    Heads are tried in order of how much their removal lowers log p: each alone, or if none changes the output, the
    first two, three … together. If nothing changes the output, the last heads that were tried are returned.
    """
    ranked = sorted(found.measured, key=lambda one: one.change)
    needs_several = all(one.predicts_otherwise is False for one in ranked)
    tries = _sets(ranked) if needs_several else ((one.place,) for one in ranked if one.predicts_otherwise)
    changing = tried(p.run, ((heads, tuple(map(removal, heads))) for heads in tries))
    heads = (ranked[0].place,)
    for heads, _, is_other in changing:  # noqa: B007  (the last ones are kept)
        if is_other:
            break
    return heads, needs_several


def _sets(ranked: list[HeadImportance]) -> Iterator[tuple[Head, ...]]:
    """Yield the first two, three … heads."""
    for count in range(2, min(_MOST, len(ranked)) + 1):
        yield tuple(one.place for one in ranked[:count])


def show_example(p: Page, example: Example) -> None:
    """Show the output without these heads as the first sentence of the page, with its changes marked."""
    text = p.text
    with st.container(gap="xsmall", key="example"):
        if example.needs_several:
            st.markdown(text["example_no_single"].format(count=len(all_heads(p.checkpoint.config))))
        unchanged = example.needs_several and not example.effect.predicts_otherwise
        one = "example_cause_one" if len(example.heads) == 1 else "example_cause"
        cause = text["example_even_without" if unchanged else one].format(head=_name(p, example))
        show_consequence(p, example.effect, cause)


def _numbers(p: Page, example: Example) -> dict[str, object]:
    """Return what the sentence about the reason contains."""
    found = {"count": len(all_heads(p.checkpoint.config)), "what": p.text[measured_by(p.trace)]}
    if example.strongest is None:
        return found
    return {**found, "head": _named(p, example.strongest.place), "change": _in_percent(example.strongest.change)}


def _in_percent(change: float) -> str:
    """Return a change of log p as one of p: −26%."""
    share = math.expm1(change)
    return ("+" if share > 0 else "") + percent(share, decimals=0 if abs(share) >= 0.095 else 1)


def _named(p: Page, head: Head) -> str:
    return edit_list.describe(EditSpec.parse(removal(head)), p.text)


def _name(p: Page, example: Example) -> str:
    if len(example.heads) > 1:
        return p.text["example_framed"].format(count=len(example.heads))
    return _named(p, example.heads[0])


def show_numbers_of_example(p: Page, example: Example) -> None:
    """Show the numbers of the example, why it is shown, and a button that keeps its heads removed."""
    effect, text = example.effect, p.text
    before, after = effect.answer_before, effect.answer_after
    with st.container(border=True, gap="xsmall", key="example removal"):
        if effect.asked.everywhere:  # neither run has an output of its own
            say_expectations(effect)
        elif before.parts and before.text != after.text:
            shares = [three_digits(before.probability), three_digits(math.exp(effect.after.sum()))]
            key = "example_old" if len(example.heads) == 1 else "example_old_several"
            st.markdown(text[key].format(before=shares[0], after=shares[1], change=_in_percent(effect.change)))
            if note := uncertainty_note(p):
                st.markdown(note)
        if example.reason:
            st.caption(text[example.reason].format(**_numbers(p, example)))
        st.button(
            text["example_button" if len(example.heads) == 1 else "example_button_several"],
            icon=":material/content_cut:",
            help=text["example_button_help"],
            on_click=_want,
            args=(p.sentence, example.specs),
        )
