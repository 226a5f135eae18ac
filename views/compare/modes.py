"""The three modes of the Compare page: two sentences, two checkpoints, three kinds of model."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

import transformer
from charts.canvas.attention_maps import attention_map
from charts.toolkit.style import three_digits
from transformer.config import KINDS
from transformer.files.layout import shown_name
from transformer.files.model_card import began_as, card_of
from transformer.predictions.comparison import alike_heads
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from ui.compute.loading import (
    checkpoint_names,
    checkpoint_path,
    checkpoints_folder,
    choosable_checkpoints,
    config_of,
    load_checkpoint,
    load_trace,
    readable_config,
)
from ui.shell import choice
from ui.shell.actions import Actions, SelectCell, SetChoice
from ui.shell.choice import chosen_option, one_of
from ui.shell.page import Page
from ui.shell.presentation.presenter import presenting
from ui.shell.reducer import State
from ui.show.drawings import show_map
from ui.words.catalogues import said
from ui.words.language_guess import guess_language
from ui.words.texts import as_plain, page_texts
from views.compare.cosine import show_cosine
from views.compare.packings import of_one_model, of_one_shape, packings
from views.compare.run_comparison import (
    Head,
    Side,
    heads_map,
    in_which_layer,
    map_height,
    show_answers,
    show_maps,
    which_heads,
)
from views.compare.sentence_pairs import second_sentence
from views.compare.snippets import code_of_checkpoints, code_of_sentences

_PICKED = "picked"  # "layer.head"


def sentences(p: Page) -> None:
    """Two sentences on one checkpoint."""
    (sentence, pair), first = second_sentence(p), Side("A", p.trace)
    if not sentence.strip():
        st.info(p.text["second_empty"], icon=":material/info:")
        return
    try:
        trace = load_trace(replace(p.run, sentence=sentence, target=None))
    except (transformer.InputError, transformer.NotFiniteError) as error:
        st.warning(p.text["second_wrong"].format(message=as_plain(said(error))), icon=":material/edit:")
        return
    second = Side("B", trace)
    if pair and pair["shows"] and not presenting():
        french = guess_language(f"{p.trace.text} {trace.text}") == "fr"
        st.caption(" ".join(pair[key] for key in ("shows", "in_french") if key in pair and (french or key == "shows")))
    if p.encodes_sentences:
        show_cosine(p, first, second)
    else:
        show_answers(p, first, second)
    place = (p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    heads = Head(first, *place), Head(second, *place)
    differences = show_maps(p, *heads)
    more = chosen_option(p.text, "more", ["heads", "stream"], key="compare_more")
    if more == "heads":
        which_heads(p, *heads, differences=differences)
    else:
        in_which_layer(p, *heads)
    code_of_sentences(p, sentence)


def checkpoints(p: Page) -> None:
    """One sentence, two checkpoints: A's head beside the most similar head of B."""
    others = [name for name in choosable_checkpoints(p.focus.checkpoint) if name != p.focus.checkpoint]
    if not others:
        p.nothing_to_show(
            p.text["only_one"].format(name=as_plain(p.focus.checkpoint), folder=as_plain(str(checkpoints_folder())))
        )
    kin = _kin_of(p.checkpoint, others)
    room = st.container(horizontal=True, vertical_alignment="bottom")
    with room:
        about = {"help": p.text["other_help"], "width": 300, "format_func": shown_name}
        name = choice.select(p.text["other"], others, others[0], key="other", **about)
        if names := ", ".join(f"**{other}**" for other in kin if other != name):
            st.caption(p.text["kin_other"].format(name=p.focus.checkpoint, others=names), width=560)
    first = Side("A", p.trace, whole=False)  # before B: what A cannot read is said of A
    trace = _read(p, name)
    if trace is None:
        return
    second = Side("B", trace, whole=False)
    if of_one_model(p.checkpoint, trace.checkpoint):
        with room:
            third = _third(p, [other for other in others if other != name])
        traces = {name: trace} | ({third: found} if third and (found := _read(p, third)) else {})
        show_answers(p, first, *(Side(*one, whole=False) for one in zip("BC", traces.values(), strict=False)))
        packings(p, [one.checkpoint for one in traces.values()])
        code_of_checkpoints(p, list(traces))
        return
    show_answers(p, first, second)
    one = Head(first, p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    stack, kind, far = _comparable(p, one, second)
    best = tuple(int(number) for number in np.unravel_index(far.argmin(), far.shape))
    of_kin = name in kin and (one.layer, one.head) in np.ndindex(far.shape)
    layer, head = _picked((p.focus, name), (one.layer, one.head) if of_kin else best, shape=far.shape)
    show_maps(p, one, Head(second, stack, kind, layer, head))
    if of_kin:
        st.caption(p.text["kin_same"].format(layer=one.layer, head=one.head))
    if np.isnan(far).any():
        st.markdown(p.text["heads_none"])
    else:
        numbers = {"layer": one.layer, "head": one.head, "best_layer": best[0], "best_head": best[1]}
        largest, value = three_digits(float(far.max())), three_digits(float(far[best]))
        st.markdown(p.text["alike_intro"].format(**numbers, largest=largest, value=value))
        heads_map(p, far, key="compare alike", selected=(layer, head), means=_pick)
    code_of_checkpoints(p, [name])


def _third(p: Page, others: Sequence[str]) -> str:
    """A third file of the same model, by its configuration; "" where none is chosen, or there is none."""
    alike = [name for name in others if (found := readable_config(name)) and of_one_shape(p.checkpoint.config, found)]
    if not alike:
        return ""
    names = {
        "": [text["third_none"] for text in (p.text, *page_texts(p.text.name))],
        **{name: [name] for name in alike},
    }
    help = p.text["third_help"]
    return one_of(p.text["third"], names, "", key="compare_third", in_list=True, help=help, width=300)


def _comparable(p: Page, one: Head, other: Side) -> tuple[str, str, np.ndarray]:
    """Which attention of another checkpoint stands beside A's (stack, kind), and how far its heads are from A's head.

    The same kind where there is one. But a model that goes on with a text and a decoder that translates it read other
    tokens: where none is the same, it is the first kind that has some.
    """
    wanted, kinds = (one.stack, one.kind), other.trace.attention_kinds()
    found = {}
    for stack, kind in sorted(kinds, key=lambda place: place != wanted):
        layers = [other.attention(stack, layer, kind) for layer in range(other.trace.n_layers(stack))]
        found[stack, kind] = alike_heads(one.view, layers, head=one.head)
        if not np.isnan(found[stack, kind]).any():
            break
    else:
        stack, kind = next(iter(found))
    notes = [p.text["sentence_only"]] if one.side.cut or other.cut else []
    if (stack, kind) != wanted:
        because = p.text["no_tokens" if wanted in kinds else "no_attention"].format(
            name=as_plain(other.name),
            kind=p.text[f"kind_{one.stack}_{one.kind}"],
            other=p.text[f"kind_{stack}_{kind}"],
        )
        notes = [because, *notes]
    if notes:
        st.caption(" ".join(notes))
    return stack, kind, found[stack, kind]


def _kin_of(checkpoint: transformer.Checkpoint, others: Sequence[str]) -> list[str]:
    """Those trained from the same weights: a head of one is then the same head of the other, changed."""
    root = began_as(checkpoint.card) or checkpoint.name
    return [other for other in others if (began_as(card_of(checkpoint_path(other))) or other) == root]


def _read(p: Page, name: str) -> Trace | None:
    """What another checkpoint does with the focused sentence, or a line that says why there is nothing."""
    try:
        checkpoint = load_checkpoint(name)
        pads = p.focus.pads if checkpoint.config.has_encoder else 0
        return load_trace(Run(checkpoint, p.focus.sentence, source_pads=pads, strategy=p.run.strategy))
    except (transformer.CheckpointError, transformer.InputError, transformer.NotFiniteError, OSError) as error:
        st.warning(
            p.text["other_wrong"].format(name=as_plain(name), message=as_plain(said(error))), icon=":material/edit:"
        )
        return None


def _pick(_state: State, cell: SelectCell) -> Actions:
    return (SetChoice(_PICKED, (f"{cell.query}.{cell.key}",)),)


def _picked(question: tuple, best: tuple[int, int], *, shape: tuple[int, int]) -> tuple[int, int]:
    """The head of B to show: the one that was clicked for just this question, else the best one."""
    places = {(layer, head): [f"{layer}.{head}"] for layer, head in np.ndindex(shape)}
    return choice.read_option(_PICKED, places, best, owner=question)


def kinds(p: Page) -> None:
    """Encoder-only, decoder-only and encoder-decoder, a column each: what each may look at, on the same sentence."""
    st.markdown(p.text["kinds_intro"])
    st.html("<style>.st-key-compare-kinds [data-testid='stColumn'] { min-width: 19rem; }</style>")
    with st.container(key="compare kinds"):
        columns = st.columns(len(KINDS), gap="small", border=True)
    own = p.trace  # before the others: what it cannot read is said of it, once
    names = {kind: _checkpoint_of_kind(p, kind) for kind in reversed(KINDS)}
    for column, (kind, name) in zip(columns, names.items(), strict=True):
        with column:
            st.markdown(f"##### {p.text[f'kind_name_{kind}']}" + (f" · {as_plain(name)}" if name else ""))
            st.caption(p.text[f"kind_may_{kind}"])
            if not name:
                st.info(p.text["kind_missing"], icon=":material/info:")
                continue
            trace = own if name == p.focus.checkpoint else _read(p, name)
            for place in trace.attention_kinds() if trace else ():
                _small_map(p, trace, *place)
    code_of_checkpoints(p, [name for name in names.values() if name and name != p.focus.checkpoint])


def _small_map(p: Page, trace: Trace, stack: str, kind: str) -> None:
    """The focused head, or the nearest that this model has."""
    checkpoint, layer = trace.checkpoint, min(p.focus.layer, trace.n_layers(stack) - 1)
    head = min(p.focus.head, checkpoint.config.heads_in(stack) - 1)
    view = Side("A", trace, whole=False).attention(stack, layer, kind)
    show_map(
        attention_map(
            view,
            head=head,
            height=map_height(),
        ),
        key=f"compare kind {checkpoint.name} {stack} {kind}",
    )


def _checkpoint_of_kind(p: Page, kind: str) -> str:
    """The focused checkpoint where it is of this kind, else the first that is; one that writes words before one that
    names classes."""
    found = []
    for name in checkpoint_names():
        try:
            config = config_of(name)
        except (OSError, ValueError):
            continue
        if config.kind == kind:
            found.append((name != p.focus.checkpoint, bool(config.class_names), name))
    return min(found)[2] if found else ""
