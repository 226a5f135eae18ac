"""The mask editor: controls that choose a mask, the map to paint on, and buttons that undo strokes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from charts.canvas.mask_editor import mask_editor
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.text.word_spans import words_of
from ui.compute.store import store
from ui.lab.experiments import tried
from ui.page.living_picture import without_words
from ui.page.page import Page
from ui.shell import choice
from ui.show.drawings import Stroke, show_mask_editor
from ui.words.texts import label_in_words
from views.masks.masks_view_model import MaskChoices, predicted_labels, presets, words_to_block

_MASK = "mask"  # the choices, as strings
_HISTORY = "mask history"  # history of one map: its masks as strings, the current one last
_OF = "mask of"  # the map of the history
_MAX_STEPS = 50


def choose(p: Page, view: AttentionView) -> MaskChoices:
    """Draw preset, number or word, and scope; return the mask of these choices and painted cells."""
    text, choices = p.text, _current(p, view)
    words = [word.text for word in words_of(view.key)]
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="mask controls"):
        _buttons(p, "preset", {name: text[_preset_text(view, name)] for name in presets(view)}, choices.preset)
        scopes = {name: text[f"scope_{name}"] for name in ("all", "layer")}
        _buttons(p, "scope", scopes, "all" if choices.everywhere else "layer")
        if choices.preset == "window":
            longest = max(2, len(view.key))
            _set("mask size", min(choices.size, longest))
            st.slider(text["size"], 1, longest, key="mask size", on_change=_report, args=("size",), width=260)
        if choices.preset == "word":
            _set("mask word", min(choices.word, len(words) - 1))
            numbers, name = range(len(words)), [label_in_words(word) for word in words].__getitem__
            said = {"key": "mask word", "on_change": _report, "args": ("word",), "width": 220}
            st.selectbox(text["word"], numbers, format_func=name, **said)
    return choices


def draw_editor(
    p: Page, own: AttentionView, now: AttentionView, choices: MaskChoices, *, of_earlier_output: bool = False
) -> None:
    """Draw the map under the mask, from ``own`` without it and ``now`` with it; strokes paint cells.

    ``of_earlier_output``: the rows are an output that the model no longer generates under the mask.
    """
    location = Head(own.stack, own.kind, own.layer, p.focus.head)
    drawn = mask_editor(
        now,
        head=location.head,
        own=own.allowed,
        shifted_labels=predicted_labels(p.trace, location),
        of_earlier_output=of_earlier_output,
        height=330,  # so that its legend remains visible below the first sentence, and above a lesson's bar
    )
    show_mask_editor(drawn, key="mask editor", on_paint=partial(paint, choices.as_choice()))


def take_back(p: Page, choices: MaskChoices) -> None:
    """Draw the buttons that undo the last change, and all changes."""
    first, untouched = len(st.session_state[_HISTORY]) < 2, choices.preset == "own" and not choices.cells
    with st.container(horizontal=True, gap="small"):
        st.button(p.text["undo"], icon=":material/undo:", on_click=_undo, disabled=first, key="mask undo")
        st.button(p.text["reset"], icon=":material/restart_alt:", on_click=_reset, disabled=untouched, key="mask reset")


def paint(begins: Sequence[str], stroke: Stroke) -> None:
    """Add the cells of a stroke to the mask, to ``begins`` if none was chosen: its callback."""
    before = MaskChoices.from_texts(choice.values(_MASK) or begins)
    choice.put(_MASK, *before.painted(stroke.cells, allowed=stroke.allowed).as_choice())


def _current(p: Page, view: AttentionView) -> MaskChoices:
    """Return the mask of this map.

    Painted cells belong to one sentence and kind of attention; a preset stays.
    """
    of, state = hash((p.checkpoint.fingerprint, view.query.ids, view.key.ids, view.stack, view.kind)), st.session_state
    asked = choice.values(_MASK)
    choices = MaskChoices.from_texts(asked).fitting(view) if asked else _begin(p, view)
    if asked and state.get(_OF, of) != of and list(asked) == state[_HISTORY][-1]:  # an address contains no mask
        choices = replace(choices, cells={}, word=0)
    texts = list(choices.as_choice())
    if state.get(_OF) != of:
        state[_OF], state[_HISTORY] = of, [texts]
    elif texts != state[_HISTORY][-1]:
        state[_HISTORY] = [*state[_HISTORY][-_MAX_STEPS:], texts]
    if asked and texts != list(asked):
        choice.put(_MASK, *texts)
    return choices


def _begin(p: Page, view: AttentionView) -> MaskChoices:
    """Return the default mask: it hides a word without which the output changes, if one is found quickly.

    If none is, or there is no output, the word without which the predictions change most. A lesson begins with the
    model's own mask.
    """
    if p.focus.lesson or "word" not in presets(view):
        return MaskChoices()

    def find() -> MaskChoices:
        strongest, largest = MaskChoices(), -1.0
        blocked, left_out = words_to_block(view), without_words(p.trace)
        if left_out is not None:  # first the word on which the class depends most, which Overview names
            blocked = tuple(sorted(blocked, key=lambda word: word != left_out.decisive))
        hiding = [MaskChoices("word", word=word) for word in blocked]
        if not (p.checkpoint.config.has_decoder or p.checkpoint.config.n_classes):
            # Without a blank, such a model predicts the hidden word itself: one of a single token is easier to read.
            words = words_of(view.key)
            hiding = [one for one in hiding if words[one.word].end - words[one.word].start == 1] or hiding
        for choices, found, is_other in tried(p.run, ((one, one.specs(view)) for one in hiding)):
            if is_other and not found.asked.everywhere:
                return choices
            if found.mean_kl > largest:
                strongest, largest = choices, found.mean_kl
        return strongest

    return store.get(p.run, ("mask to begin with", view.name), find, wait="wait.block")


def _undo() -> None:
    if len(history := st.session_state.get(_HISTORY, [])) > 1:
        history.pop()
        choice.put(_MASK, *history[-1], page="masks")


def _reset() -> None:
    _change(lambda choices: replace(choices, preset="own", cells={}))


def _report(name: str) -> None:
    value = st.session_state[f"mask {name}"]
    if value is None:  # the control still shows an option that this attention layer does not have
        return
    if name == "preset":
        _change(lambda choices: replace(choices, preset=value, cells={}))
    elif name == "scope":
        _change(lambda choices: replace(choices, everywhere=value == "all"))
    else:
        _change(lambda choices: replace(choices, **{name: value}))


def _change(changed: Callable[[MaskChoices], MaskChoices]) -> None:
    choices = MaskChoices.from_texts(st.session_state[_HISTORY][-1])  # even if no mask was chosen
    choice.put(_MASK, *changed(choices).as_choice(), page="masks")


def _preset_text(view: AttentionView, name: str) -> str:
    return "preset_window_encoder" if name == "window" and view.stack == "encoder" else f"preset_{name}"


def _buttons(p: Page, name: str, options: Mapping[str, str], value: str) -> None:
    key, named = f"mask {name}", options.__getitem__
    _set(key, value)
    said = {"key": key, "on_change": _report, "args": (name,), "help": p.text[f"{name}_help"], "wrap": True}
    st.segmented_control(p.text[name], list(options), format_func=named, required=True, **said)


def _set(key: str, value: object) -> None:
    if st.session_state.get(key) != value:
        st.session_state[key] = value
