"""One sentence on several checkpoints: similar heads, two files, three kinds of model."""

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

import transformer
from charts.canvas.attention_maps import attention_map
from charts.toolkit.head_names import head_name
from transformer.config import KINDS
from transformer.files.layout import shown_name
from transformer.files.model_card import card_of, starting_checkpoint
from transformer.heads.head_roles import sentence_roles
from transformer.interventions.compared_runs import (
    AlikeHeads,
    attention_of_sentence,
    heads_like,
    next_tokens,
    of_one_model,
    of_one_shape,
)
from transformer.interventions.experiment import Experiment, experiment
from transformer.runs.head_places import Head
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from ui.compute.loading import (
    checkpoint_names,
    checkpoint_path,
    checkpoints_folder,
    choosable_checkpoints,
    load_checkpoint,
    readable_config,
)
from ui.page.page import Page
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.choice import one_of
from ui.shell.focus import is_presenting
from ui.shell.offers import offer
from ui.show.drawings import Cell, show_map
from ui.words.texts import listed, page_text, page_texts, problem_text
from views.compare.compare_sections import Side, answers, heads_map, map_height, maps, side, which_heads

_PICKED = "picked"  # "layer.head"
_OTHER = "other"
# Pairs that are offered if both are installed, as A and B. Their texts are in [checkpoint_pair].
_PAIRS = {"sharp": ("en-fr", "en-fr-sharp")}


def two_checkpoints(p: Page) -> None:
    """Draw the choice of another checkpoint and the comparison with the one in focus."""
    own = p.focus.checkpoint
    others = [name for name in choosable_checkpoints(own) if name != own]
    if not others:
        p.nothing_to_show(p.md("only_one", name=own, folder=str(checkpoints_folder())))
    # Checkpoints of one root have heads that correspond one to one.
    root = starting_checkpoint(p.checkpoint.card) or p.checkpoint.name
    kin = [other for other in others if (starting_checkpoint(card_of(checkpoint_path(other))) or other) == root]
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    with controls:
        about = {"help": p.text["other_help"], "width": 300, "format_func": shown_name}
        name = choice.select(p.text["other"], others, others[0], key=_OTHER, **about)
        if names := [other for other in kin if other != name]:
            p.say("kin_other", small=True, name=own, others=listed(names))
    _offer_pairs(p, others, name)
    _ = p.trace  # before B, so that an error names A
    trace = trace_by(p, name)
    if trace is None:
        return
    head = p.selected_head
    if of_one_model(p.checkpoint, trace.checkpoint):
        with controls:
            third = _choose_third(p, [other for other in others if other != name])
        found = [trace, *filter(None, [trace_by(p, third) if third else None])]
        _packings(p, head, [one.checkpoint for one in found])
        return
    alike = p.calc(heads_like, head, p.trace, trace, name="alike", shows=(".best", ".distances"))
    layers, heads = alike.distances.shape
    of_kin = name in kin and not alike.is_other_kind and head.layer < layers and head.head < heads
    places = {(layer, one): [f"{layer}.{one}"] for layer in range(layers) for one in range(heads)}
    best = head[2:] if of_kin else alike.best
    other = Head(alike.stack, alike.kind, *choice.read_option(_PICKED, places, best, owner=(p.focus, name)))
    sides = [side(p, *each, attention_of_sentence) for each in (("A", p.trace, head), ("B", trace, other))]
    answers(p, sides, [p.calc(Experiment, p.trace, trace, name="found")], [own, name])
    _say_what_is_compared(p, name, alike, sides)
    maps(p, sides)
    if of_kin:
        p.say("kin_same", small=True, head=head_name(head.layer, head.head))
    _alike_heads(p, head, other, alike)


def _offer_pairs(p: Page, others: Sequence[str], name: str) -> None:
    """Offer the pairs of checkpoints that answer a question, and explain the chosen pair."""
    here, texts = {p.focus.checkpoint, *others}, p.text["checkpoint_pair"]
    pairs = {texts[key]["label"]: key for key, pair in _PAIRS.items() if here.issuperset(pair)}
    if not pairs:
        return
    shown = next((label for label, key in pairs.items() if {*_PAIRS[key]} == {p.focus.checkpoint, name}), None)
    more = {"key": "compare checkpoint pair", "take": partial(_take_pair, pairs), "show_label": not is_presenting()}
    offer(p.text["checkpoint_pairs"], list(pairs), chosen=shown, **more)
    if shown and not is_presenting():
        st.caption(texts[pairs[shown]]["shows"])


def _take_pair(pairs: Mapping[str, str], label: str) -> None:
    first, second = _PAIRS[pairs[label]]
    shared_focus.change(checkpoint=first)
    choice.put(_OTHER, second)


def trace_by(p: Page, name: str) -> Trace | None:
    """Return the run of another checkpoint on the sentence, or write why there is none."""
    try:
        checkpoint = load_checkpoint(name)
        pads = p.focus.pads if checkpoint.config.has_encoder else 0
        run = Run(checkpoint, p.sentence_for(name), source_pads=pads, strategy=p.run.strategy)
        return p.trace_of(run, checkpoint=f"transformer.load({p.place_of(name)!r})")
    except (transformer.CheckpointError, transformer.InputError, transformer.NotFiniteError, OSError) as error:
        st.warning(p.md("other_wrong", name=name, message=problem_text(error)), icon=":material/edit:")
        return None


def _say_what_is_compared(p: Page, name: str, alike: AlikeHeads, sides: Sequence[Side]) -> None:
    if alike.is_other_kind:
        kinds = {"kind": "kind_{}_{}".format(*alike.wanted), "other": f"kind_{alike.stack}_{alike.kind}"}
        names = {key: p.text[kind] for key, kind in kinds.items()}
        p.say("no_tokens" if alike.exists else "no_attention", small=True, name=name, **names)
    if any(side.trace.checkpoint.config.kind == "decoder-only" for side in sides):
        p.say("sentence_only", small=True)


def _alike_heads(p: Page, head: Head, other: Head, alike: AlikeHeads) -> None:
    """Draw the distance of every head of B from A's; a click shows that head next to A's."""
    if not alike.is_known:
        p.say("heads_none")
        return
    numbers = {"largest": float(alike.distances.max()), "value": float(alike.distances[alike.best])}
    p.say("alike_intro", head=head_name(head.layer, head.head), best=head_name(*alike.best), **numbers)
    heads_map(p, alike.distances, key="compare alike", selected=other[2:], on_click=_pick)


def _pick(cell: Cell) -> None:
    choice.put(_PICKED, f"{cell.query}.{cell.key}")


# ---- files of one model ---------------------------------------------------------------------------------------------


def _choose_third(p: Page, others: Sequence[str]) -> str:
    """Return a third file of the same model, judged by its configuration; "" if there is none."""
    alike = [name for name in others if (found := readable_config(name)) and of_one_shape(p.checkpoint.config, found)]
    if not alike:
        return ""
    none = [text["third_none"] for text in (p.text, *page_texts(p.name))]
    more = {"key": "compare_third", "in_list": True, "help": p.text["third_help"], "width": 300}
    return one_of(p.text["third"], {"": none, **{name: [name] for name in alike}}, "", **more)


def _packings(p: Page, head: Head, others: Sequence[transformer.Checkpoint]) -> None:
    """Compare all files of one model on the tokens of A: one head, roles, next tokens, all heads."""
    found = [
        p.calc(
            experiment,
            p.trace,
            checkpoint=p.known(other, f"transformer.load({p.place_of(other.name)!r})", key=Run(other, "")),
            name="found",
        )
        for other in others
    ]
    traces = [p.trace, *(p.part(one, "changed") for one in found)]
    sides = [side(p, letter, trace, head) for letter, trace in zip("ABC", traces, strict=False)]
    answers(p, sides, found, [trace.checkpoint.name for trace in traces])
    maps(p, sides)
    _roles(p, sides)
    _next_tokens(p, sides, found)
    which_heads(p, sides)


def _roles(p: Page, sides: Sequence[Side]) -> None:
    """Say how many heads have another role in this sentence than in A, and which."""
    names = {role: called["name"] for role, called in page_text("heads")["role"].items()}
    own, *others = ([role for view in one.trace.attention_views() for role in sentence_roles(view)] for one in sides)
    for other, roles in zip(sides[1:], others, strict=True):
        changed = [(one, two) for one, two in zip(own, roles, strict=True) if one.role != two.role]
        named = [f"{one.layer}.{one.head} ({names[one.role]} → {names[two.role]})" for one, two in changed[:5]]
        key = "packing_roles" if changed else "packing_same_roles"
        p.say(key, side=other.letter, changed=len(changed), heads=len(own), named=listed(named))


def _next_tokens(p: Page, sides: Sequence[Side], experiments: Sequence[Experiment]) -> None:
    """Show the most likely next tokens of all files, with their probabilities and logits."""
    for other, one in zip(sides[1:], experiments, strict=True):
        found = p.calc(next_tokens, one, name="likely", shows=(".kl",))
        if found is None:
            return
        p.say("packing_logits", side=other.letter, kl=found.kl, mean=found.mean, most=found.most)
        columns = {
            "token": found.displays,
            p.words("packing_p", side="A"): found.before,
            p.words("packing_p", side=other.letter): found.after,
            p.words("packing_logit", side="A"): found.logits,
            f"{other.letter} − A": found.changes,
        }
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        p.table(rows, name="packings" + ("" if other.letter == "B" else f" {other.letter}"))


# ---- three kinds of model -------------------------------------------------------------------------------------------


def three_kinds(p: Page) -> None:
    """Draw one column each for encoder-only, decoder-only and encoder-decoder: what a token may attend to."""
    p.say("kinds_intro")
    st.html("<style>.st-key-compare-kinds [data-testid='stColumn'] { min-width: 19rem; }</style>")
    with st.container(key="compare kinds"):
        columns = st.columns(len(KINDS), gap="small", border=True)
    own = p.trace  # first, so that an error about the sentence is shown only once
    for column, kind in zip(columns, reversed(KINDS), strict=True):
        with column:
            name = _checkpoint_of_kind(p, kind)
            st.markdown("##### " + listed([p.text[f"kind_name_{kind}"], *filter(None, [name])], " · "))
            p.say(f"kind_may_{kind}", small=True)
            if not name:
                st.info(p.text["kind_missing"], icon=":material/info:")
                continue
            trace = own if name == p.focus.checkpoint else trace_by(p, name)
            for stack, kind_of_attention in trace.attention_kinds() if trace else ():
                layer = min(p.focus.layer, trace.n_layers(stack) - 1)
                head = min(p.focus.head, trace.checkpoint.config.heads_in(stack) - 1)
                place = (stack, layer, kind_of_attention)
                view = p.calc(attention_of_sentence, trace, *place, name="view", shows=(".weights.shape",))
                key = f"compare kind {trace.checkpoint.name} {stack} {kind_of_attention}"
                show_map(attention_map(view, head=head, height=map_height()), key=key)


def _checkpoint_of_kind(p: Page, kind: str) -> str:
    """Return the checkpoint in focus if it is of this kind, else the first of this kind."""
    found = [
        (name != p.focus.checkpoint, bool(config.class_names), name)
        for name in checkpoint_names()
        if (config := readable_config(name)) and config.kind == kind
    ]
    return min(found)[2] if found else ""
