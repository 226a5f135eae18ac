"""Selectors for stack, kind of attention, layer and head, beside the sentence."""

from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer.config import ModelConfig, PictureConfig
from ui.server.streamlit_private import page_hash
from ui.shell import focus as shared_focus
from ui.shell.fitting import attention_kinds
from ui.shell.focus import Focus
from ui.words.texts import PageText, common

NEEDS = ("stack", "kind", "layer", "head", "token")
_WIDTH = 118  # pixels
_OF_MANY_TASKS = ("t5", "bart")  # encoder-decoder families; Marian, M2M100 and mBART translate
_DRAWN_ON = "choose: drawn on"  # the page of the last run


def work_of(config: ModelConfig) -> str:
    """Return the task of a model by its name in texts: "classifier", "text-to-text", or its kind.

    An encoder-decoder translates, unless it was trained on tasks with prefixes or is of a family whose checkpoints do
    many things; a config.json need not state which.
    """
    if config.n_classes:
        return "classifier"
    several = config.kind == "encoder-decoder" and getattr(config, "family", "") in _OF_MANY_TASKS
    return "text-to-text" if several or config.task_prefixes else config.kind


def traits_of(config: ModelConfig) -> frozenset[str]:
    """Return the traits that a text about a model may depend on.

    These are what it does (``work_of``), its positions, "pre" or "post" norm, "picture" if it reads one, "rms" if its
    norms do not subtract the mean, "gated" if its feed-forward layers have a gate, "window" if some layers have a
    limited range, "tanh" if that is their activation, and "vector" if its output is a vector of the sentence.
    """
    picture = ("picture",) if config.reads_images else ()
    more = [trait for trait, name in (("rms", "rms_norm"), ("gated", "gated")) if getattr(config, name, False)]
    more += ["window"] if any(getattr(config, "windows", ())) else []
    more += ["tanh"] if config.activation == "tanh" else []
    more += ["vector"] if config.encodes_sentences else []
    return frozenset((work_of(config), config.positions, config.norm, *picture, *more))


def text_for(text: PageText, config: ModelConfig | None) -> PageText:
    """Return a page's text with the replacements that a model needs ([of_classes], …).

    [of_blanks] is for models that predict masked words, [of_pictures] for every model that reads images, [of_images]
    for those whose images are files.
    """
    if config is None:
        return text
    kinds = {
        "of_classes": bool(config.n_classes),
        "of_blanks": config.fills_blanks,
        "of_pictures": config.reads_images,
        "of_vectors": config.encodes_sentences,
        "of_images": config.reads_images and not isinstance(config, PictureConfig),
    }
    return text.instead(*[name for name, is_one in kinds.items() if is_one])


def selectors(
    focus: Focus,
    config: ModelConfig,
    *,
    needs: Sequence[str],
    room: DeltaGenerator,
    before: Callable[[], None] | None = None,
) -> None:
    """Draw the selectors in ``needs`` for which the model has a choice, in ``room``.

    ``before`` is called before a choice changes the focus of all pages, from which ``focus`` may differ.
    """
    kinds = attention_kinds(config)
    stacks = tuple(dict.fromkeys(stack for stack, _ in kinds))
    n_layers = config.n_encoder_layers if focus.stack == "encoder" else config.n_decoder_layers
    if not {"kind", "stack", "layer", "head"} & {*needs}:
        return  # a page may draw its lists in a second call, which must still know that the page is another one
    # On another page, the same key is a new widget without a value, but still refers to the previous page's widget.
    anew = st.session_state.get(_DRAWN_ON) != page_hash()
    st.session_state[_DRAWN_ON] = page_hash()
    with room:
        if "kind" in needs and len(kinds) > 1:
            both = [f"{stack} {kind}" for stack, kind in kinds]
            _choose("kind", both, f"{focus.stack} {focus.kind}", anew=anew, before=before)
        elif "stack" in needs and len(stacks) > 1:
            _choose("stack", list(stacks), focus.stack, anew=anew, before=before)
        if "layer" in needs:
            _choose("layer", list(range(n_layers)), focus.layer, anew=anew, before=before)
        if "head" in needs:
            _choose("head", list(range(config.heads_in(focus.stack))), focus.head, anew=anew, before=before)


def _choose(name: str, options: list, value: object, *, anew: bool, before: Callable[[], None] | None) -> None:
    """Draw a list whose entries name themselves, set from the focus and reporting to it."""
    key = f"choose {name}"
    if anew or st.session_state.get(key) != value:
        st.session_state[key] = value
    label = common(f"focus.{name}")
    names = {one: common(f"focus.{one}") if isinstance(one, str) else f"{label} {one}" for one in options}
    st.selectbox(
        label,
        options,
        key=key,
        on_change=_change,
        args=(name, tuple(names), before),
        format_func=names.__getitem__,
        label_visibility="collapsed",
        width=_WIDTH,
    )


def _change(name: str, offered: Sequence[str | int], before: Callable[[], None] | None = None) -> None:
    """Handle a choice; what a message not made by our page reports beside those offered is ignored."""
    if (chosen := st.session_state[f"choose {name}"]) in offered:
        if before:
            before()
        shared_focus.change(**_changes_of(name, chosen))


def _changes_of(name: str, chosen: str | int) -> dict[str, str | int]:
    """Return the changes of the focus for a choice."""
    if name == "stack":
        return {"stack": chosen, "kind": "self"}
    if name == "kind":
        stack, kind = str(chosen).split()
        return {"kind": kind} if stack == shared_focus.current().stack else {"kind": kind, "stack": stack}
    return {name: chosen}
