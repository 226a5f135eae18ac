"""The sections of Surgery: the map of all heads, ways to change the model, what a change does."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from charts.canvas.value_map import value_map
from transformer import InputError
from transformer.attribution.attention_trust import spearman
from transformer.errors import CheckpointError
from transformer.files.layout import file_of_results
from transformer.heads.role_files import FILE, load_corpus_roles
from transformer.heads.roles_and_importance import roles_against_importance
from transformer.interventions.attribution_patching import estimated_importance, strongest
from transformer.interventions.experiment import Experiment, experiment
from transformer.interventions.head_importance import Importance, head_effect, head_importance, importance_by_chunks
from transformer.predictions.sweep import sweep
from transformer.runs.edit_specs import EditSpec, edits_from
from transformer.runs.edits import ablate_head, mean_ablate_head
from transformer.runs.head_places import Head, all_heads
from transformer.runs.run import Run
from ui.compute.loading import load_trace
from ui.page.living_picture import edited_picture
from ui.page.page import Page
from ui.sections import sweeps
from ui.sections.effects import measured_probability, say_expectations, show_consequence
from ui.sections.uncertain_output import uncertainty_note
from ui.shell import choice
from ui.shell.focus import select, start_of
from ui.show.drawings import Cell, show_map
from ui.words.model_terms import output_bias
from ui.words.texts import Marked, as_plain, model_sentences, problem_text, slider_format
from views.surgery import edit_list
from views.surgery.steering_section import add_direction

CLICKS = ("zero", "mean", "focus")
NUMBERED = 1 / 3  # of the largest number: from here on, a cell has a strong colour and its number is written

# ---- the importance of all heads ------------------------------------------------------------------------------------


def choose(p: Page) -> tuple[str, str]:
    """Draw, collapsed, the choices of a click's effect and the map's number; return both."""
    with st.popover(p.text["settings"], icon=":material/tune:", key="surgery settings"):
        click = p.option("click", CLICKS, key="surgery click", help=p.text["click_help"])
        return click, p.option("what", ("change", "kl"), key="surgery what")


def importance(p: Page) -> Importance | None:
    """Return the effect of removing each head; ``None`` if it is long and not requested, or was stopped."""
    count = len(all_heads(p.checkpoint.config))
    if sweeps.waits(p, "importance", count):
        sweeps.start_button(p, "importance", p.words("start", count=count))
        return None
    shows = (f'.table("{p.focus.stack}", "{p.focus.kind}")',)
    return p.calc(head_importance, p.trace, name="importance", slow=True, wait="wait.remove", shows=shows)


def example_head(p: Page, measured: Importance | None, click: str) -> Head | None:
    """Return the head of the first sentence: the most important one, or the selected one.

    It is the selected one if clicks select heads. The most important one is the head whose removal lowers log p most,
    among the heads whose removal changes the output, or among all heads if no removal does. With edits, the page
    describes them instead.
    """
    if click == "focus" or p.focus.lesson:
        return p.selected_head
    if measured is None or edit_list.specs():
        return None
    return min(measured.measured, key=lambda one: (not one.predicts_otherwise, one.change)).place


def importance_map(p: Page, measured: Importance | None, click: str, number: str) -> None:
    """Draw all heads, a row per layer; a click applies the chosen edit."""
    guess = None
    if sweeps.is_long(p, len(all_heads(p.checkpoint.config))):
        guess = p.calc(estimated_importance, p.trace, name="estimate")
    if measured is not None:
        _map(p, measured, number, number, click)
        p.say("map_caption", small=True, count=len(measured.heads))
        if guess is not None and number == "change":
            changes = [np.array([one.change for one in found.measured]) for found in (guess, measured)]
            error = float(np.abs(changes[0] - changes[1]).mean())
            p.say("estimate_after", small=True, agreement=spearman(*changes), error=error)
    elif guess is not None and number == "kl":
        p.say("estimate_kl", small=True)
    elif guess is not None:
        _map(p, guess, "change", "estimate", click)
        _say_error(p, guess)


def _say_error(p: Page, guess: Importance) -> None:
    """Write the largest numbers of the estimate next to the measured effect of removing those heads."""
    pairs = []
    for head in strongest(guess, sweeps.CHECKED):
        effect = p.calc(head_effect, p.trace, *head[:1], head.layer, head.kind, head=head.head, name="effect")
        pairs.append((_row(p, *head[:3]), guess.measured[guess.heads.index(head)].change, effect.change))
    sweeps.say_error(p, pairs, count=len(guess.heads))


def _row(p: Page, stack: str, kind: str, layer: int) -> str:
    return p.words("row", part=p.text["short"][f"{stack}_{kind}"], layer=layer)


def _map(p: Page, found: Importance, what: str, name: str, click: str) -> None:
    kinds = tuple(dict.fromkeys((head.stack, head.kind) for head in found.heads))
    tables = [found.table(*kind, what) for kind in kinds]
    width = max(table.shape[1] for table in tables)  # a decoder may have more heads than the encoder
    values = np.vstack([np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=np.nan) for one in tables])
    places = [(*kind, layer) for kind, table in zip(kinds, tables, strict=True) for layer in range(len(table))]
    sizes = np.nan_to_num(np.abs(values))
    cut = [edit for edit in map(EditSpec.parse, edit_list.specs()) if edit.action in ("zero", "mean")]
    selected = places.index(p.selected_head[:3]), p.selected_head.head
    strong = np.argwhere((sizes > 0) & (sizes >= NUMBERED * sizes.max())).tolist()
    show_map(
        value_map(
            values,
            row_labels=[_row(p, *place) for place in places],
            column_labels=[str(head) for head in range(width)],
            row_title=p.text["rows_title"],
            column_title=p.text["columns_title"],
            scale="sequential" if what == "kl" else "diverging",
            allowed=np.isfinite(values),
            selected=selected,
            title=p.text["map"][name].format(p=measured_probability(p)),
            value_name=p.text["map_value"][name],
            phrase=(p.text["phrase_before"], p.text["phrase_between"]),
            height=440,
            breaks=np.cumsum([len(table) for table in tables])[:-1].tolist(),
            crossed=[(places.index((edit.stack, edit.part, edit.layer)), edit.head) for edit in cut],
            numbered=[*strong, selected],
            legend=p.text["map_legend"] if what == "change" else "",
            masked_text=p.text["no_head"],
        ),
        key="importance",
        on_click=partial(_choose_head, places, np.isfinite(values), click),
    )


def _choose_head(places: Sequence[tuple[str, str, int]], exists: np.ndarray, click: str, cell: Cell) -> None:
    """Select or edit the head of a cell (a callback)."""
    stack, kind, layer = places[cell.query]
    if not exists[cell.query, cell.key]:
        return
    if click == "focus":
        select(stack=stack, kind=kind, layer=layer, head=cell.key)
    else:
        edit_list.toggle(f"{click}:{stack}.{layer}.{kind}.{cell.key}")


def roles_and_importance(p: Page, measured: Importance | None) -> None:
    """Say whether heads with a role over many sentences matter more in this one."""
    if measured is None:
        return
    try:
        saved = p.calc(load_corpus_roles, p.checkpoint, name="saved", reads=file_of_results(p.checkpoint.path, FILE))
    except CheckpointError:
        saved = None
    if saved is None or not any(head.measures for head in saved.heads):
        p.say("roles_unknown", small=True)
        return
    found = roles_against_importance(saved, measured)
    means = {"with_role": found.with_role, "without": found.without}
    means = {name: "–" if np.isnan(value) else value for name, value in means.items()}
    p.say("roles", small=True, agreement=found.agreement, count=len(measured.measured), **means)


# ---- ways to change the model ---------------------------------------------------------------------------------------


def more_edits(p: Page) -> None:
    """Draw controls that scale a head, remove an edge, sub-layer or residual, patch, or steer."""
    ways = {"head": _scale, "edge": _edge, "sublayer": _sublayer, "patch": _patch, "steer": add_direction}
    ways[p.option("more", tuple(ways), key="surgery more", wrap=True)](p)


def _place(p: Page) -> str:
    return f"{p.focus.stack}.{p.focus.layer}.{p.focus.kind}.{p.focus.head}"


def _scale(p: Page) -> None:
    place = _place(p)
    parsed = [EditSpec.parse(text) for text in edit_list.specs() if text.startswith(f"scale:{place}=")]
    key, factor = f"scale {place}", float(parsed[0].value) if parsed else 1.0
    st.session_state[key] = min(3.0, max(-1.0, factor))
    more = {"help": p.text["scale_help"], "on_change": _set_scale, "args": (place,)}
    st.slider(p.text["scale"], -1.0, 3.0, step=0.25, format=slider_format(), key=key, **more)


def _set_scale(place: str) -> None:
    factor = st.session_state[f"scale {place}"]
    for text in edit_list.specs():
        if text.startswith(f"scale:{place}="):
            edit_list.remove(text)
    if factor != 1.0:
        edit_list.add(f"scale:{place}={factor:g}")


def _edge(p: Page) -> None:
    view = p.trace.attention(p.focus.stack, p.focus.layer, p.focus.kind)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = p.token("query", view.query, min(p.focus.token, len(view.query) - 1), key="edge query", width=220)
        key = p.token("key", view.key, 0, key="edge key", width=220)
        edge = f"edge:{_place(p)}={query}-{key}"
        st.button(p.text["cut_edge"], icon=":material/content_cut:", on_click=edit_list.add, args=(edge,))
    p.say("edge_note", small=True)


def _sublayer(p: Page) -> None:
    stack, layer = p.focus.stack, p.focus.layer
    parts = ["self", "feed_forward"]
    if stack == "decoder" and p.checkpoint.config.has_encoder:
        parts.insert(1, "cross")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        part = p.option("sublayer", parts, key="sublayer", owner=stack)
        for action in ("drop", "residual"):
            spec = f"{action}:{stack}.{layer}.{part}"
            st.button(p.text[action], icon=":material/content_cut:", on_click=edit_list.add, args=(spec,), key=action)
    p.say("sublayer_note", small=True)


def _patch(p: Page) -> None:
    with st.form("patch", border=False):
        ready = start_of(p.sentence, p.checkpoint.framing.starts) + model_sentences()["patch"]
        sentence = choice.text(p.text["patch"], default=ready, key="patch sentence")
        wanted = st.form_submit_button(p.text["patch_button"], icon=":material/swap_horiz:")
    p.say("patch_note", small=True)
    if wanted:
        try:
            load_trace(Run(p.checkpoint, sentence))
        except InputError as error:
            st.warning(as_plain(problem_text(error)), icon=":material/edit:")
            return
        edit_list.add(f"patch:{_place(p)}={sentence}")
        st.rerun()


# ---- what a change does ---------------------------------------------------------------------------------------------


def removal(head: Head) -> str:
    """Return the removal of a head as an edit."""
    return f"zero:{head.stack}.{head.layer}.{head.kind}.{head.head}"


def run_with(p: Page, specs: tuple[str, ...]) -> Experiment:
    """Return the run compared with the same run with these edits, and record its Python.

    Raises:
        NotFiniteError: If the activations of either run are not finite.
    """
    edits = p.calc(edits_from, p.checkpoint, specs, name="edits")
    shows = (".change, found.mean_kl", ".answer_after.text")
    return p.calc(experiment, p.trace, edits, name="found", shows=shows, wait="wait.again")


def say_effect(p: Page, found: Experiment, head: Head | None, click: str) -> None:
    """Say what the removal of a head, or without one the edits, changes: the first sentence of the page."""
    count = len(edit_list.specs())
    with st.container(gap="xsmall", key="example"):
        if head is None:
            show_consequence(p, found, p.md("cause" if count == 1 else "causes"))
        else:
            place = p.text["part_short"][f"{head.stack}_{head.kind}"]
            key = "without" if click == "focus" else "without_most"
            show_consequence(p, found, p.md(key, place=place, layer=head.layer, head=head.head))


def show_example(p: Page, found: Experiment, head: Head, click: str) -> None:
    """Show the probability without the head that the page describes, and a button that keeps it removed."""
    with st.container(border=True, gap="xsmall", key="example removal"):
        if found.asked.everywhere:  # neither run has an output of its own
            say_expectations(found)
        elif found.before.size:
            before, after = (float(np.exp(log_p.sum())) for log_p in (found.before, found.after))
            p.say("example", before=before, after=after, factor=found.factor, note=Marked(uncertainty_note(p)))
        if click != "focus":
            p.say("most", small=True)
        more = {"help": p.text["keep_help"], "on_click": edit_list.add, "args": (removal(head),)}
        keep = p.md("keep", layer=head.layer, head=head.head)
        st.button(keep, icon=":material/content_cut:", key="keep removed", **more)


def edited_sentence(p: Page, edits: tuple[str, ...]) -> None:
    """Draw, once it is opened, the living picture of the edited model."""
    with choice.collapsible(p.text["picture"], icon=":material/movie:", key="edited_picture") as opened:
        if opened.open:
            edited_picture(p, edits)
            p.say("picture_hint", small=True)


def formula_and_code(p: Page, found: Experiment) -> None:
    """Show the formula of importance, the page as code, and its source."""
    tokens = len(found.asked.ids)
    p.formula(
        rf"\text{{MultiHead}} = \sum_{{h}} m_h\,\text{{head}}_h W_O^{{(h)}}{output_bias(p.checkpoint.model)}, \qquad "
        rf"\Delta = \sum_{{t=1}}^{{{tokens}}} \log p_{{m_h=0}}(y_t) - \log p(y_t)",
        "formula_caption", count=tokens, heads=len(all_heads(p.checkpoint.config)),
    )  # fmt: skip
    p.code(ablate_head, mean_ablate_head, Experiment, importance_by_chunks, sweep)
