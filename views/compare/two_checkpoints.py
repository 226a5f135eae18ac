"""One sentence on two checkpoints: A's head and the most similar head of B; or two files of one model."""

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

import transformer
from charts.toolkit.head_names import head_name
from charts.toolkit.style import three_digits
from transformer.files.layout import shown_name
from transformer.files.model_card import began_as, card_of
from transformer.predictions.comparison import align, alike_heads
from transformer.runs.head_places import Head
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from ui.compute.loading import (
    checkpoint_path,
    checkpoints_folder,
    choosable_checkpoints,
    load_checkpoint,
    load_trace,
    readable_config,
)
from ui.lab.experiments import experiment_beside, experiment_with
from ui.page.page import Page
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.choice import one_of
from ui.shell.offers import offer
from ui.shell.presentation.presenter import is_presenting
from ui.show.drawings import Cell
from ui.show.figures import show_snippet, show_source, show_table
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain, page_text, page_texts
from views.compare.compare_view_model import (
    AlikeHeads,
    CompareViewModel,
    compare_view_model,
    heads_like,
    of_one_model,
    of_one_shape,
)
from views.compare.run_comparison import heads_map, show_answers, show_maps, which_heads

_PICKED = "picked"  # "layer.head"
_OTHER = "other"
# Pairs that are offered if both are installed, as A and B. Their texts are in [checkpoint_pair].
_PAIRS = {"sharp": ("en-fr", "en-fr-sharp")}


def checkpoints(p: Page) -> None:
    """Draw the choice of another checkpoint and the comparison with the one in focus."""
    others = [name for name in choosable_checkpoints(p.focus.checkpoint) if name != p.focus.checkpoint]
    if not others:
        p.nothing_to_show(
            p.text["only_one"].format(name=as_plain(p.focus.checkpoint), folder=as_plain(str(checkpoints_folder())))
        )
    kin = _kin_of(p.checkpoint, others)
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    with controls:
        about = {"help": p.text["other_help"], "width": 300, "format_func": shown_name}
        name = choice.select(p.text["other"], others, others[0], key=_OTHER, **about)
        if names := ", ".join(f"**{other}**" for other in kin if other != name):
            st.caption(p.text["kin_other"].format(name=p.focus.checkpoint, others=names), width=560)
    _offer_pairs(p, others, name)
    _ = p.trace  # before B, so that an error names A
    trace = trace_by(p, name)
    if trace is None:
        return
    location = Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    if of_one_model(p.checkpoint, trace.checkpoint):
        with controls:
            third = _choose_third(p, [other for other in others if other != name])
        found = [trace, *filter(None, [trace_by(p, third) if third else None])]
        _packings(p, location, [one.checkpoint for one in found])
        return
    alike = heads_like(location, p.trace, trace)
    of_kin = name in kin and not alike.is_other_kind and _has(alike, location)
    layer, head = _picked((p.focus, name), location[2:] if of_kin else alike.best, alike)
    other = Head(alike.stack, alike.kind, layer, head)
    shown = compare_view_model([experiment_beside(p.run, trace.run)], location, others=[other], whole=False)
    show_answers(p, shown)
    _say_what_is_compared(p, shown, alike)
    show_maps(p, shown)
    if of_kin:
        st.caption(p.text["kin_same"].format(head=head_name(location.layer, location.head)))
    _alike_heads(p, shown, alike)
    code_of_checkpoints(p, [name])


def _offer_pairs(p: Page, others: Sequence[str], name: str) -> None:
    """Offer the pairs of checkpoints that answer a question, and explain the chosen pair."""
    here = {p.focus.checkpoint, *others}
    pairs = {p.text["checkpoint_pair"][key]["label"]: key for key, pair in _PAIRS.items() if here.issuperset(pair)}
    if not pairs:
        return
    shown = next((label for label, key in pairs.items() if {*_PAIRS[key]} == {p.focus.checkpoint, name}), None)
    take = partial(_take_pair, pairs)
    label = p.text["checkpoint_pairs"]
    offer(label, list(pairs), key="compare checkpoint pair", chosen=shown, take=take, show_label=not is_presenting())
    if shown and not is_presenting():
        st.caption(p.text["checkpoint_pair"][pairs[shown]]["shows"])


def _take_pair(pairs: Mapping[str, str], label: str) -> None:
    first, second = _PAIRS[pairs[label]]
    shared_focus.change(checkpoint=first)
    choice.put(_OTHER, second)


def trace_by(p: Page, name: str) -> Trace | None:
    """Return the run of another checkpoint on the sentence, or write why there is none."""
    try:
        checkpoint = load_checkpoint(name)
        pads = p.focus.pads if checkpoint.config.has_encoder else 0
        return load_trace(Run(checkpoint, p.sentence_for(name), source_pads=pads, strategy=p.run.strategy))
    except (transformer.CheckpointError, transformer.InputError, transformer.NotFiniteError, OSError) as error:
        message = p.text["other_wrong"].format(name=as_plain(name), message=as_plain(problem_text(error)))
        st.warning(message, icon=":material/edit:")
        return None


def _kin_of(checkpoint: transformer.Checkpoint, others: Sequence[str]) -> list[str]:
    """Return checkpoints trained from the same weights, whose heads correspond one to one."""
    root = began_as(checkpoint.card) or checkpoint.name
    return [other for other in others if (began_as(card_of(checkpoint_path(other))) or other) == root]


def _has(alike: AlikeHeads, location: Head) -> bool:
    n_layers, n_heads = alike.distances.shape
    return location.layer < n_layers and location.head < n_heads


def _say_what_is_compared(p: Page, shown: CompareViewModel, alike: AlikeHeads) -> None:
    notes = []
    if alike.is_other_kind:
        notes.append(
            p.text["no_tokens" if alike.exists else "no_attention"].format(
                name=as_plain(shown.sides[1].name),
                kind=p.text["kind_{}_{}".format(*alike.wanted)],
                other=p.text[f"kind_{alike.stack}_{alike.kind}"],
            )
        )
    if any(side.is_cut for side in shown.sides):
        notes.append(p.text["sentence_only"])
    if notes:
        st.caption(" ".join(notes))


def _alike_heads(p: Page, shown: CompareViewModel, alike: AlikeHeads) -> None:
    """Draw the distance of every head of B from A's; a click shows that head next to A's."""
    if not alike.is_known:
        st.markdown(p.text["heads_none"])
        return
    best = alike.best
    st.markdown(
        p.text["alike_intro"].format(
            head=head_name(shown.location.layer, shown.location.head),
            best=head_name(*best),
            largest=three_digits(float(alike.distances.max())),
            value=three_digits(float(alike.distances[best])),
        )
    )
    heads_map(p, alike.distances, key="compare alike", selected=shown.sides[1].location[2:], on_click=_pick)


def _pick(cell: Cell) -> None:
    choice.put(_PICKED, f"{cell.query}.{cell.key}")


def _picked(question: tuple, best: tuple[int, int], alike: AlikeHeads) -> tuple[int, int]:
    """Return the head of B to show: the clicked one if the question is the same, else the most similar."""
    n_layers, n_heads = alike.distances.shape
    places = {(layer, head): [f"{layer}.{head}"] for layer in range(n_layers) for head in range(n_heads)}
    return choice.read_option(_PICKED, places, best, owner=question)


def _choose_third(p: Page, others: Sequence[str]) -> str:
    """Return a third file of the same model, judged by its configuration; "" if there is none."""
    alike = [name for name in others if (found := readable_config(name)) and of_one_shape(p.checkpoint.config, found)]
    if not alike:
        return ""
    names = {
        "": [text["third_none"] for text in (p.text, *page_texts(p.text.name))],
        **{name: [name] for name in alike},
    }
    help = p.text["third_help"]
    return one_of(p.text["third"], names, "", key="compare_third", in_list=True, help=help, width=300)


def _packings(p: Page, location: Head, others: Sequence[transformer.Checkpoint]) -> None:
    """Compare all files of one model on the tokens of A: one head, all heads, roles, next tokens."""
    shown = compare_view_model([experiment_with(p.run, checkpoint=other) for other in others], location)
    show_answers(p, shown)
    show_maps(p, shown)
    _roles(p, shown)
    _next_tokens(p, shown)
    which_heads(p, shown)
    code_of_checkpoints(p, [side.name for side in shown.sides[1:]])


def _roles(p: Page, shown: CompareViewModel) -> None:
    """Say how many heads have another role in this sentence than in A, and which."""
    names = {role: called["name"] for role, called in page_text("heads")["role"].items()}
    for side, changed in zip(shown.sides[1:], shown.changed_roles, strict=True):
        named = ", ".join(
            f"{one.layer}.{one.head} ({names[one.role]} → {names[other.role]})" for one, other in changed[:5]
        )
        key = "packing_roles" if changed else "packing_same_roles"
        line = p.text[key].format(changed=len(changed), heads=shown.n_heads, named=named)
        st.markdown(f"{side.letter}: {line}" if len(shown.sides) > 2 else line)


def _next_tokens(p: Page, shown: CompareViewModel) -> None:
    """Show the most likely next tokens of all files, with their probabilities and logits."""
    found = shown.likely_tokens
    if found is None:
        return
    letters = [side.letter for side in shown.sides]
    table = {"token": list(found.displays)}
    for letter, probabilities in zip(letters, found.probabilities, strict=True):
        table[p.text["packing_p"].format(side=letter)] = probabilities
    table[p.text["packing_logit"].format(side="A")] = found.logits
    for letter, change, other in zip(letters[1:], found.changes, found.others, strict=True):
        numbers = {name: three_digits(getattr(other, name)) for name in ("kl", "mean", "most")}
        st.markdown(p.text["packing_logits"].format(side=letter, **numbers))
        table[f"{letter} − A"] = change
    show_table(pd.DataFrame(table), name="packings")


def code_of_checkpoints(p: Page, others: Sequence[str]) -> None:
    """Show the code for one sentence on several checkpoints, beginning with this page's."""
    sentences = {p.place_of(name): p.sentence_for(name) for name in others}
    show_snippet(
        "compare",
        f"{p.preamble}\nothers = {sentences!r}\n"
        "runs = [trace, *(transformer.trace(transformer.load(place), text) for place, text in others.items())]\n"
        "for run in runs:\n"
        "    for stack, kind in run.attention_kinds():\n"
        "        for layer in range(run.n_layers(stack)):\n"
        "            print(run.checkpoint.name, stack, kind, layer, run.attention(stack, layer, kind).weights.shape)\n",
    )
    show_source(align, alike_heads)
