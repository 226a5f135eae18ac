"""One sentence through training: a slider over the steps, the output, the attention of heads."""

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.toolkit.style import percent_digits
from transformer.files.snapshots import quantise
from transformer.heads.sentence_through_training import Moment, map_change, moment_of
from transformer.runs.head_places import Head
from ui.page.page import Page, guard
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.focus import select
from ui.shell.fragments import fragment
from ui.shell.long_texts import say_long_text
from ui.shell.selectors import selectors
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_formula, show_snippet, show_source, show_table
from ui.words.texts import as_plain, page_texts
from views.training.moments import RANDOM, Step, moments_at, say_what_is_broken, shown_steps, with_snapshots
from views.training.time_lapse_figures import map_strip
from views.training.time_lapse_words import likely, marked, note, per_token, step_name, step_names, story
from views.training.training_view_model import TrainingViewModel, training_view_model

STEP = "training_step"
_MAP_HEIGHT = 440  # pixels


def time_lapse(p: Page) -> None:
    """Draw the sentence at every step with a snapshot."""
    steps = shown_steps(p.checkpoint)
    if not steps:
        p.nothing_to_show(without_snapshots(p))
    if p.reads_long_text:
        p.nothing_to_show(say_long_text(p.run, "page"))
    say_what_is_broken(p, steps)
    if len(moments_at(p, steps)) < 2:
        p.finish()
    row = st.container(horizontal=True, vertical_alignment="bottom", key="time-lapse head")
    selectors(p.focus, p.checkpoint.config, needs=("stack", "kind", "layer", "head"), room=row)
    shown = _view_model(p, steps)
    most, moved = shown.run.most_changed
    row.button(
        p.text["time_most"],
        icon=":material/trending_up:",
        help=p.text["time_most_help"].format(change=percent_digits(moved)),
        on_click=select,
        kwargs=most._asdict(),
    )
    _through_time(p, steps)
    _table(p, shown.run)
    _arithmetic(p, shown.run)
    if RANDOM in steps and len(steps) == 2:
        st.caption(without_snapshots(p))


def without_snapshots(p: Page) -> str:
    """Return the sentence that says that there are no snapshots here and which checkpoints have some."""
    others = ", ".join(as_plain(name) for name in with_snapshots())
    return p.text["time_none"] + (" " + p.text["time_others"].format(names=others) if others else "")


def _view_model(p: Page, steps: Sequence[Step]) -> TrainingViewModel:
    focus = p.focus
    return training_view_model(moments_at(p, steps), Head(focus.stack, focus.kind, focus.layer, focus.head))


@fragment
def _through_time(p: Page, steps: Sequence[Step]) -> None:
    """Draw everything that depends on the slider, which redraws only this."""
    with guard():
        if shared_focus.current() != p.focus:  # a head was clicked in the figure below, so the whole page reruns
            st.rerun()
        shown = _view_model(p, steps)
        names = step_names(shown.moments, p.text, card=p.checkpoint.card)
        answers = st.container()
        st.markdown(story(shown.run, p.text))
        here = _choose(p, shown.moments, names)
        with answers:
            show_outputs(
                p, shown.moments[here], shown.late, titles=(p.text["time_answer"], p.text["time_answer_final"])
            )
        show_figure(
            map_strip(
                shown.views,
                head=shown.location.head,
                names=[step_name(moment, p.text) for moment in shown.moments],
                chosen=here,
            ),
            name="one-head-through-training",
            caption=p.text["time_strip"].format(read=_read(p)),
        )
        key = "time_map_random" if shown.moments[here].has_random_weights else "time_map"
        st.markdown(p.text[key].format(step=names[here]))
        rows = predicted_rows(p.trace, shown.location.kind)
        drawn = attention_map(shown.views[here], head=shown.location.head, shifted_labels=rows, height=_MAP_HEIGHT)
        show_map(drawn, key="time-lapse map")
        if origin := note(shown, p.text, card=p.checkpoint.card):
            st.caption(origin)


def _read(p: Page) -> str:
    """Say what every step reads."""
    if not p.checkpoint.config.has_decoder:
        return p.text["time_read_sentence"]
    return p.text["time_read_given" if p.trace.forced else "time_read_final"]


def _choose(p: Page, moments: Sequence[Moment], names: list[str]) -> int:
    """Draw the slider; return an index into ``names``. A step of another checkpoint is forgotten."""
    in_all = zip(*(step_names(moments, text, card=p.checkpoint.card) for text in page_texts(p.text.name)), strict=True)
    codes = _codes(moments)
    called = {code: [name, *words] for code, name, words in zip(codes, names, in_all, strict=True)}
    return codes.index(choice.one_of(p.text["time_step"], called, key=STEP, in_slider=True))


def _codes(moments: Sequence[Moment]) -> list[str]:
    """Return the steps as they appear in the address."""
    return [
        RANDOM if moment.has_random_weights else "last" if moment.step is None else str(moment.step)
        for moment in moments
    ]


def show_outputs(p: Page, now: Moment, final: Moment, *, titles: tuple[str, str]) -> None:
    """Show the output at one step and that of the finished model; common words are coloured."""
    with st.container(border=True, horizontal=True, gap="medium", key="training outputs"):
        for title, moment, other in zip(titles, (now, final), (final, now), strict=True):
            with st.container(width="stretch", gap=None):
                st.caption(title)
                cut = " …" if moment.has_random_weights and moment.is_cut else ""
                st.markdown(f"#### {marked(moment.text, other.text)}{cut}")
                if moment.n_tokens or math.isnan(moment.typed_log_probability):
                    st.caption(likely(moment, other, p.text), help=p.text["time_likely_help"])
                else:
                    st.caption(typed_probability(p, moment))


def typed_probability(p: Page, moment: Moment) -> str:
    """Return how probable the text is where there is no output, per token."""
    key = "early_typed" if p.checkpoint.config.has_decoder else "early_predicted"
    return p.text[key].format(probability=per_token(math.exp(moment.typed_log_probability)))


def _table(p: Page, shown: TrainingViewModel) -> None:
    """Show a table of all steps with the complete outputs."""
    table = pd.DataFrame(
        [
            {
                p.text["time_column_step"]: moment.step,
                p.text["time_column_text"]: " ".join(moment.text.split()),
                p.text["time_column_log"]: moment.log_probability,
                p.text["time_column_uncertainty"]: moment.uncertainty,
                p.text["time_column_change"]: distance,
            }
            for moment, distance in zip(shown.moments, shown.distances, strict=True)
        ]
    )
    st.subheader(p.text["time_table"], anchor=False)
    widths = {p.text["time_column_text"]: st.column_config.TextColumn(width="large")}
    show_table(
        table, name="through-training", caption=p.text["time_table_caption"].format(read=_read(p)), column_config=widths
    )


def _arithmetic(p: Page, shown: TrainingViewModel) -> None:
    """Show the formula of the last column with this sentence's shapes, and the code for a notebook."""
    stack, kind, layer, head = shown.location
    n_queries, n_keys = shown.views[-1].allowed.shape
    show_formula(
        rf"d_t = \frac{{1}}{{n}} \sum_{{i=1}}^{{n}} \tfrac{{1}}{{2}} \sum_{{j=1}}^{{{n_keys}}} "
        r"\left|\,\alpha^{(t)}_{ij} - \alpha^{(\text{final})}_{ij}\right|",
        caption=p.text["time_formula"].format(queries=n_queries, keys=n_keys),
    )
    step = shown.early.step
    earlier = "untrained(checkpoint)" if shown.early.has_random_weights else f"snapshot(checkpoint, {step})"
    show_snippet(
        "time lapse",
        f"{p.preamble}\nfrom transformer.heads.sentence_through_training import moment_of\n\n"
        f"earlier = transformer.{earlier}\n"
        f"moment = moment_of(earlier, {step}, trace)\n"
        "print(moment.text)\n"
        "print(moment.log_probability)\n"
        f'print(moment.view("{stack}", {layer}, "{kind}").weights[{head}])\n',
    )
    show_source(moment_of, map_change, quantise)
