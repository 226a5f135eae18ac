"""The importance map of all heads, and the controls that change the model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from charts.canvas.value_map import value_map
from transformer import InputError
from transformer.interventions.attribution_patching import estimated_importance, strongest
from transformer.interventions.experiment import Experiment, experiment
from transformer.interventions.head_importance import Importance, importance_by_chunks
from transformer.interventions.sweep import sweep
from transformer.runs.edit_specs import EditSpec
from transformer.runs.edits import ablate_head, mean_ablate_head
from transformer.runs.head_places import all_heads
from transformer.runs.run import Run
from ui.compute.jobs import jobs
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.lab import sweeps
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option, one_of
from ui.shell.focus import select, start_of
from ui.shell.selectors import selectors
from ui.shell.sentence import space_beside
from ui.show.drawings import Cell, show_map
from ui.show.figures import show_formula, show_snippet, show_source
from ui.words.figure_texts import problem_text
from ui.words.model_terms import output_bias
from ui.words.texts import as_plain, common, count_text, model_sentences, number_text, slider_format
from views.surgery import edit_list
from views.surgery.example import leave_example
from views.surgery.steering_section import add_direction
from views.surgery.surgery_view_model import ImportanceMap, SurgeryChoices, SurgeryViewModel, measured_by

CLICKS = ("zero", "mean", "focus")
_SO_FAR = "importance so far"


def importance(p: Page) -> Importance:
    """Return what is known so far."""
    found = store.known(p.run, "importance") or store.known(p.run, _SO_FAR)
    return found or Importance(all_heads(p.checkpoint.config), ())


def choose(p: Page) -> SurgeryChoices:
    """Draw, collapsed, the choices of a click's effect and the map's number; return them and the edits."""
    with st.popover(p.text["settings"], icon=":material/tune:", key="surgery settings"):
        click = _choose(p, "click", CLICKS, help=p.text["click_help"])
        return SurgeryChoices(edit_list.specs(), click, _choose(p, "what", ("p", "change", "kl")))


def importance_map(p: Page, shown: SurgeryViewModel) -> None:
    """Draw all heads, one block for each kind of attention; a click applies the chosen edit.

    If measuring them needs a request, an estimate is shown first, with its error.
    """
    found, number = shown.importance, shown.choices.number
    long = sweeps.is_long(p, len(found.heads))
    if long:
        guess = store.get(p.run, "importance estimate", lambda: estimated_importance(p.trace))
    if found.measured:
        _map(p, shown, shown.importance_map)
        if long and found.complete and number != "kl":
            pairs = ([one.change for one in rows.measured] for rows in (guess, found))
            sweeps.say_agreement(p, *map(np.array, pairs))
    elif not sweeps.waits(p, "importance", len(found.heads)):
        return
    elif number == "kl":
        st.caption(p.text["estimate_kl"])
    else:
        _map(p, shown, shown.map_of(guess, "change"), estimated=True)
        _check(p, guess)


def _check(p: Page, guess: Importance) -> None:
    """Write the largest numbers of the estimate next to the measured effect of zeroing those heads."""
    heads = strongest(guess, sweeps.CHECKED)

    def measured() -> np.ndarray:
        return np.array([one.change for part in importance_by_chunks(p.trace, heads=heads) for one in part])

    names = [f"{p.text['short'][f'{head.stack}_{head.kind}']} {head.layer}.{head.head}" for head in heads]
    estimated = np.array([guess.measured[guess.heads.index(head)].change for head in heads])
    true = store.get(p.run, "importance check", measured)
    sweeps.say_error(p, names, estimated, true, count=len(guess.heads))


def _map(p: Page, shown: SurgeryViewModel, drawn: ImportanceMap, *, estimated: bool = False) -> None:
    text, diverging = p.text, shown.choices.number != "kl"
    words = "estimate" if estimated else {"p": "map", "change": "log", "kl": "kl"}[shown.choices.number]
    show_map(
        value_map(
            drawn.values,
            row_labels=[
                text["row"].format(part=text["short"][f"{stack}_{kind}"], layer=layer)
                for stack, kind, layer in drawn.rows
            ],
            column_labels=[str(head) for head in range(drawn.values.shape[1])],
            row_title=text["rows_title"],
            column_title=text["columns_title"],
            scale="diverging" if diverging else "sequential",
            allowed=np.isfinite(drawn.values),
            selected=drawn.selected,
            title=text[f"{words}_title"].format(what=text[measured_by(p.trace)]),
            value_name=text[f"{words}_value"],
            phrase=(text["phrase_before"], text["phrase_between"]),
            height=440,
            breaks=list(drawn.breaks),
            crossed=list(drawn.crossed),
            outlined=_mask(drawn) if drawn.framed else None,
            numbered=list(drawn.numbered),
            whole=words == "map",
            legend=text["map_legend"] if diverging else "",
            masked_text=text["not_measured"],
        ),
        key="importance",
        on_click=partial(_choose_head, drawn.rows, drawn.n_heads, shown.choices.click),
    )
    if not estimated:
        said = text["map_caption"].format(count=len(shown.importance.heads))
        st.caption(f"{said} {text['click_hint']}" if shown.choices.click == "zero" else said)


def _mask(drawn: ImportanceMap) -> np.ndarray:
    mask = np.zeros(drawn.values.shape, dtype=bool)
    mask[tuple(zip(*drawn.framed, strict=True))] = True
    return mask


def _choose_head(rows: Sequence[tuple[str, str, int]], heads: Sequence[int], click: str, cell: Cell) -> None:
    """Select or edit a head. ``rows``: stack, kind, layer of each row; ``heads``: their heads."""
    stack, kind, layer = rows[cell.query]
    if cell.key >= heads[cell.query]:
        return
    if click == "focus":
        select(stack=stack, kind=kind, layer=layer, head=cell.key)
    else:
        spec = f"{click}:{stack}.{layer}.{kind}.{cell.key}"
        choice.put(edit_list.EDIT, *edit_list.toggled(choice.values(edit_list.EDIT), spec))


def _choose(p: Page, name: str, options: tuple[str, ...], **more: str) -> str:
    return chosen_option(p.text, name, options, key=f"surgery {name}", **more)


def measure(p: Page, found: Importance) -> None:
    """Measure the missing heads in chunks, with a progress bar and a stop button; then run the page again.

    Any action of the reader in the meantime ends this run of the page; measurements made so far are kept.
    """
    if found.complete:
        return
    text, total = p.text, len(found.heads)
    trace, run = p.trace, p.run
    if sweeps.waits(p, "importance", total):
        sweeps.start_button(p, "importance", text["start"].format(count=total))
        return

    def work(report: Callable[[int, int], None]) -> Importance:
        so_far: Importance = store.known(run, _SO_FAR) or found
        report(len(so_far.measured), total)
        for part in importance_by_chunks(trace, heads=found.heads[len(so_far.measured) :]):
            so_far = replace(so_far, measured=(*so_far.measured, *part))
            store.keep(run, _SO_FAR, so_far)
            report(len(so_far.measured), total)
        return so_far

    if jobs.result(
        run,
        "importance",
        work,
        saying=lambda done, total: text["measuring"].format(done=done, total=total),
        stopped=text["stopped"].format(done=len(found.measured), total=total),
    ):
        st.rerun()


def more_edits(p: Page) -> None:
    """Draw controls that scale a head, remove an edge, sub-layer or residual, patch, or steer."""
    ways = {"head": _scale, "edge": _edge, "sublayer": _sublayer, "patch": _patch, "steer": add_direction}
    way = _choose(p, "more", tuple(ways))
    needs = ("stack", "layer") if way == "sublayer" else ("stack", "kind", "layer", "head")
    selectors(p.focus, p.checkpoint.config, needs=needs, room=space_beside(), before=partial(leave_example, p))
    ways[way](p)


def _place(p: Page) -> str:
    return f"{p.focus.stack}.{p.focus.layer}.{p.focus.kind}.{p.focus.head}"


def _scale(p: Page) -> None:
    place = _place(p)
    parsed = [EditSpec.parse(text) for text in edit_list.specs() if f":{place}" in text]
    factor = next((float(spec.value) for spec in parsed if spec.action == "scale"), 1.0)
    key = f"scale {place}"
    st.session_state[key] = min(3.0, max(-1.0, factor))
    st.slider(
        p.text["scale"], -1.0, 3.0, step=0.25, format=slider_format(), key=key, help=p.text["scale_help"],
        on_change=_set_scale, args=(place,),
    )  # fmt: skip


def _set_scale(place: str) -> None:
    factor = st.session_state[f"scale {place}"]
    for text in edit_list.specs():
        if text.startswith(f"scale:{place}="):
            edit_list.remove(text)
    if factor != 1.0:
        edit_list.add(f"scale:{place}={factor:g}")


def _edge(p: Page) -> None:
    view = p.trace.attention(p.focus.stack, p.focus.layer, p.focus.kind)
    chosen = []
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, tokens in (("query", view.query), ("key", view.key)):
            names = {index: [number_text(index, display)] for index, display in enumerate(tokens.displays)}
            first = min(p.focus.token, len(tokens) - 1) if name == "query" else 0
            chosen.append(
                one_of(p.text[name], names, first, key=f"edge {name}", owner=tokens.ids, in_list=True, width=220)
            )
        edge = f"edge:{_place(p)}={chosen[0]}-{chosen[1]}"
        st.button(p.text["cut_edge"], icon=":material/content_cut:", on_click=edit_list.add, args=(edge,))
    st.caption(p.text["edge_note"])


def _sublayer(p: Page) -> None:
    focus, text = p.focus, p.text
    parts = ["self", "feed_forward"]
    if focus.stack == "decoder" and p.checkpoint.config.has_encoder:
        parts.insert(1, "cross")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        part = chosen_option(
            text,
            "sublayer",
            parts,
            key="sublayer",
            owner=focus.stack,
            label=text["sublayer"].format(stack=common(f"diagram.{focus.stack}").lower(), layer=focus.layer),
            words=lambda text, part: text["sublayer_name"][part],
        )
        for action in ("drop", "residual"):
            spec = f"{action}:{focus.stack}.{focus.layer}.{part}"
            st.button(text[action], icon=":material/content_cut:", on_click=edit_list.add, args=(spec,), key=action)
    st.caption(text["sublayer_note"])


def _patch(p: Page) -> None:
    with st.form("patch", border=False):
        task = start_of(p.sentence, p.checkpoint.framing.starts)
        ready = task + model_sentences()["patch"]
        sentence = choice.text(p.text["patch"], default=ready, key="patch sentence")
        wanted = st.form_submit_button(p.text["patch_button"], icon=":material/swap_horiz:")
    st.caption(p.text["patch_note"])
    if wanted:
        try:
            load_trace(Run(p.checkpoint, sentence))
        except InputError as error:
            st.warning(as_plain(problem_text(error)), icon=":material/edit:")
            return
        edit_list.add(f"patch:{_place(p)}={sentence}")
        st.rerun()


def formula_and_code(p: Page, shown: SurgeryViewModel) -> None:
    """Show the formulas, the page as code, and its source code."""
    text, found, location = p.text, shown.found, shown.location
    n_tokens = len(found.asked.ids)
    show_formula(
        text["formula"].replace("%TOKENS%", str(n_tokens)).replace("%BIAS%", output_bias(p.checkpoint.model)),
        caption=text["formula_caption"].format(tokens=count_text(n_tokens, "token"), heads=len(shown.importance.heads)),
    )
    show_snippet(
        "surgery",
        f"{p.preamble}\nfrom transformer.interventions.experiment import experiment\n"
        f"from transformer.interventions.head_importance import head_importance\n\n"
        f"edits = transformer.edits_from(checkpoint, {list(shown.choices.edits)!r})\n"
        "found = experiment(trace, edits)\n"
        f"print(found.change, found.mean_kl)  # {found.change:.6g} {found.mean_kl:.6g}\n"
        "print(found.answer_after.text)\n"
        f'print(head_importance(trace).table("{location.stack}", "{location.kind}"))\n',
    )
    show_source(ablate_head, mean_ablate_head, experiment, Experiment, importance_by_chunks, sweep)
