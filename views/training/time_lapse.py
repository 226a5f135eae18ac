"""The same sentence through training time: a slider over the steps, what the model answers, where its heads look."""

import math
from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import transformer
from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.files.snapshots import quantise, snapshot_file, snapshot_steps
from transformer.heads.roles_through_training import (
    Moment,
    changed_most,
    map_change,
    moment_of,
    settled_moment,
    training_steps,
)
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from ui.compute.jobs import jobs
from ui.compute.loading import checkpoint_names, checkpoints_folder
from ui.compute.store import store
from ui.lab.role_names import role_text
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.actions import SelectHead, SetChoice
from ui.shell.fitting import attention_kinds
from ui.shell.fragments import fragment
from ui.shell.page import Page, guard
from ui.shell.reducer import send
from ui.shell.selectors import selectors
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_formula, show_snippet, show_source, show_table
from ui.words.texts import as_plain, common, page_text, page_texts
from views.training.jobs_through_training import jobs_through_training
from views.training.time_lapse_figures import map_strip, role_timeline
from views.training.time_lapse_words import marked, probability, step_name, step_names, story, summary

STEP = "training_step"
_CHART = "roles-through-training"
_MAP_HEIGHT = 440  # pixels, so that all heads are not far below
_FEW_KEYS = 10  # a map of more columns takes the whole width


def time_lapse(p: Page) -> None:
    """The focused sentence at every step of which the checkpoint has a snapshot."""
    steps = training_steps(p.checkpoint)
    if not steps:
        others = ", ".join(as_plain(name) for name in with_snapshots())
        p.nothing_to_show(p.text["time_none"] + (" " + p.text["time_others"].format(names=others) if others else ""))
    room = st.container(horizontal=True, vertical_alignment="bottom", key="time-lapse head")
    selectors(p.focus, p.checkpoint.config, needs=("stack", "kind", "layer", "head"), room=room)
    moments = _moments(p, steps)
    place, change = changed_most(moments)
    room.button(
        p.text["time_most"],
        icon=":material/trending_up:",
        help=p.text["time_most_help"].format(change=three_digits(change)),
        on_click=shared_focus.change,
        kwargs={"stack": place.stack, "kind": place.kind, "layer": place.layer, "head": place.head},
    )
    _through_time(p, steps)
    _table(p, moments)
    _arithmetic(p, moments)
    jobs_through_training(p)


@fragment
def _through_time(p: Page, steps: Sequence[int | None]) -> None:
    """Draw all that follows the slider, which redraws only this."""
    with guard():
        if shared_focus.current() != p.focus:  # a head was clicked in the figure below: all of the page follows it
            st.rerun()
        moments = _moments(p, steps)
        names = step_names(moments, p.text, card=p.checkpoint.card)
        answers = st.container()
        place, heads = _place(p), page_text("heads")
        st.markdown(story(moments, place, p.text))
        here = _choose(p, moments, names)
        with answers:
            _answers(p, moments, here)
        views = [moment.view(place.stack, place.layer, place.kind) for moment in moments]
        roles = [moment.role(place) for moment in moments]
        short = [step_name(moment, p.text) for moment in moments]
        notes = [heads["role_short"][role.role] for role in roles]
        show_figure(
            map_strip(views, head=place.head, names=short, notes=notes, chosen=here),
            name="one-head-through-training",
            caption=p.text["time_strip"].format(read=_read(p)),
        )
        picture, overview = _places(wide=len(views[here].key) > _FEW_KEYS)
        with picture:
            role = role_text(roles[here], heads)
            st.markdown(p.text["time_map"].format(step=names[here], role=role))
            rows = predicted_rows(p.trace, place.kind)
            drawn = attention_map(views[here], head=place.head, shifted_labels=rows, height=_MAP_HEIGHT)
            show_map(drawn, key="time-lapse map")
        with overview:
            st.markdown(summary(moments, p.text))
            _overview(p, moments, names, here)


def _places(*, wide: bool) -> tuple[DeltaGenerator, DeltaGenerator]:
    """For the map and for all heads: side by side where there is room and the map is not ``wide``."""
    if wide:
        return st.container(), st.container()
    both = st.grid(5, min_column_width=185, key="time-lapse pictures")
    return both.cell(column_span=2), both.cell(column_span=3)


def _moments(p: Page, steps: Sequence[int | None]) -> list[Moment]:
    """Every step's, from the cache where possible; what takes longer says how far it is and can be cancelled."""
    trace, names = p.trace, [p.text["time_final"] if step is None else whole(step) for step in steps]

    def work(report: Callable[[int, int], None]) -> list[Moment]:
        found = []
        for index, step in enumerate(steps):
            report(index, len(steps))
            found.append(moment(trace, step, final=index == len(steps) - 1))
        return found

    versions = [version(p.checkpoint, step, final=index == len(steps) - 1) for index, step in enumerate(steps)]
    found = jobs.result(
        trace.run,
        ("time-lapse", *steps, *versions),
        work,
        saying=lambda done, _: p.text["time_progress"].format(step=names[done]),
    )
    if found is None:
        p.finish()
    return found


def _read(p: Page) -> str:
    """What every step reads, in words."""
    if not p.checkpoint.config.has_decoder:
        return p.text["time_read_sentence"]
    return p.text["time_read_given" if p.trace.forced else "time_read_final"]


def _place(p: Page) -> Head:
    return Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)


def _choose(p: Page, moments: Sequence[Moment], names: list[str]) -> int:
    """The slider; returns an index into ``names``. A step of another checkpoint is forgotten."""
    in_all = zip(*(step_names(moments, text, card=p.checkpoint.card) for text in page_texts(p.text.name)), strict=True)
    codes = _codes(moments)
    called = {code: [name, *words] for code, name, words in zip(codes, names, in_all, strict=True)}
    return codes.index(choice.one_of(p.text["time_step"], called, key=STEP, in_slider=True))


def _codes(moments: Sequence[Moment]) -> list[str]:
    """The steps as the address names them."""
    return ["last" if moment.step is None else str(moment.step) for moment in moments]


def _answers(p: Page, moments: Sequence[Moment], here: int) -> None:
    """What the model wrote at this step, and what it writes in the end; words that both have are coloured."""
    now, final = moments[here], moments[-1]
    with st.container(border=True, horizontal=True, gap="medium"):
        for title, moment, other in (("time_answer", now, final), ("time_answer_final", final, now)):
            with st.container(width="stretch", gap=None):
                st.caption(p.text[title])
                st.markdown(f"#### {marked(moment.text, other.text)}")
        with st.container(width=200, gap=None):
            st.caption(p.text["time_likely"])
            st.markdown(f"#### {probability(now)}", help=p.text["time_likely_help"])


def _overview(p: Page, moments: Sequence[Moment], names: Sequence[str], here: int) -> None:
    """All heads at all steps; a click on a cell goes to that head and that step."""
    heads = page_text("heads")
    kinds, codes = attention_kinds(p.checkpoint.config), _codes(moments)
    rows = [
        {
            "group": kinds.index((role.stack, role.kind)),
            "layer": role.layer,
            "head": role.head,
            "moment": index,
            "role": role.role,
            "role_name": heads["role"][role.role],
            "score": role.score,
            "spread": role.scores.get("broad", math.nan),
        }
        for index, moment in enumerate(moments)
        for role in moment.roles
    ]
    groups = [common(f"focus.{stack} {kind}") for stack, kind in kinds]  # short: three panels fit on a narrow screen
    place = _place(p)
    figure = role_timeline(
        pd.DataFrame(rows),
        groups=groups,
        moments=[step_name(moment, p.text) for moment in moments],
        current=here,
        chosen=(kinds.index((place.stack, place.kind)), place.layer, place.head),
    )

    def go() -> None:
        points = st.session_state[f"chart {_CHART}"].selection.points
        if points:
            group, layer, head, index = points[0]["customdata"]
            stack, kind = kinds[group]
            send(SelectHead(layer, head, stack, kind))
            send(SetChoice(STEP, (codes[index],)))

    show_figure(figure, name=_CHART, caption=p.text["time_roles"], on_select=go)


def _table(p: Page, moments: Sequence[Moment]) -> None:
    """Every step in numbers, with the whole translations."""
    place = _place(p)
    final = moments[-1].view(place.stack, place.layer, place.kind)
    table = pd.DataFrame(
        [
            {
                p.text["time_column_step"]: moment.step,
                p.text["time_column_text"]: " ".join(moment.text.split()),
                p.text["time_column_log"]: moment.log_probability,
                p.text["time_column_uncertainty"]: moment.uncertainty,
                p.text["time_column_roles"]: moment.clear_roles,
                p.text["time_column_role"]: page_text("heads")["role"][moment.role(place).role],
                p.text["time_column_entropy"]: moment.role(place).scores.get("entropy", math.nan),
                p.text["time_column_change"]: float(
                    map_change(moment.view(place.stack, place.layer, place.kind), final)[place.head]
                ),
            }
            for moment in moments
        ]
    )
    st.subheader(p.text["time_table"], anchor=False)
    widths = {p.text["time_column_text"]: st.column_config.TextColumn(width="large")}
    show_table(
        table, name="through-training", caption=p.text["time_table_caption"].format(read=_read(p)), column_config=widths
    )


def _arithmetic(p: Page, moments: Sequence[Moment]) -> None:
    """The formula of the last column with this sentence's shapes; how to get a moment in a notebook."""
    place = _place(p)
    view = moments[-1].view(place.stack, place.layer, place.kind)
    n_queries, n_keys = view.allowed.shape
    show_formula(
        rf"d_t = \frac{{1}}{{n}} \sum_{{i=1}}^{{n}} \tfrac{{1}}{{2}} \sum_{{j=1}}^{{{n_keys}}} "
        r"\left|\,\alpha^{(t)}_{ij} - \alpha^{(\text{final})}_{ij}\right|",
        caption=p.text["time_formula"].format(queries=n_queries, keys=n_keys),
    )
    step = moments[0].step
    show_snippet(
        "time lapse",
        f"{p.preamble}\nfrom transformer.heads.roles_through_training import moment_of\n\n"
        f"earlier = transformer.snapshot(checkpoint, {step})\n"
        f"moment = moment_of(earlier, {step}, trace)\n"
        "print(moment.text)\n"
        "print(moment.log_probability)\n"
        f'print(moment.view("{place.stack}", {place.layer}, "{place.kind}").weights[{place.head}])\n',
    )
    show_source(moment_of, settled_moment, map_change, quantise)


# ---- one sentence at the earlier steps: kept between reruns, read-only -----------------------------------------------


def with_snapshots() -> tuple[str, ...]:
    """The names of the checkpoints that came with snapshots."""
    return tuple(name for name in checkpoint_names() if snapshot_steps(checkpoints_folder() / name))


def moment(trace: Trace, step: int | None, *, final: bool) -> Moment:
    """What ``trace`` reads as the model was at ``step``; see ``moment_of``.

    ``final``: the step is the checkpoint's own, so that there is no snapshot to open.
    Raises ``transformer.CheckpointError`` for a snapshot that is broken.
    """
    checkpoint = trace.checkpoint
    stamp = version(checkpoint, step, final=final)

    def make() -> Moment:
        earlier = ("snapshot", step, stamp)
        model = checkpoint if final else store.get(checkpoint, earlier, lambda: transformer.snapshot(checkpoint, step))
        return moment_of(model, step, trace)

    return store.get(trace.run, ("moment", step, stamp), make)


def version(checkpoint: transformer.Checkpoint, step: int | None, *, final: bool) -> tuple[int, ...]:
    """Size and time of change of a snapshot's file: one that was written again is another one."""
    if final:
        return ()
    status = (checkpoint.path / snapshot_file(step)).stat()
    return status.st_size, status.st_mtime_ns
