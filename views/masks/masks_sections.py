"""The sections of the Masks page: a mask to choose and paint, its effect, the padding sandbox."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, LOOKS_AT, PREDICTING, mask_editor, row_title
from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from transformer.attention import attention_weights
from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.errors import NotFiniteError
from transformer.interventions.experiment import PADS, Experiment, answer_under, experiment, padding_drift
from transformer.masks import combined_mask
from transformer.runs.attention_view import AttentionView
from transformer.runs.edit_specs import edits_from
from transformer.runs.mask_choices import MaskChoices, presets, words_to_block
from transformer.runs.mask_edits import mask_edit
from transformer.text.word_spans import words_of
from ui.compute.store import store
from ui.page.living_picture import without_words
from ui.page.page import Page
from ui.sections.effects import show_consequence
from ui.shell import choice, page_state
from ui.show.drawings import Stroke, show_map, show_mask_editor
from ui.show.score_formula import score_formula
from ui.words.texts import label_in_words, listed

_MASK = "mask"  # the choices, as strings
_HISTORY = "mask history"  # history of one map: its masks as strings, the current one last
_OF = "mask of"  # the map of the history
_MAX_STEPS = 50
_TRIES = 8  # masks that are tried for the page to open with
_MOST_ROWS = 4  # empty rows that are named


# ---- choosing and painting ------------------------------------------------------------------------------------------


def choose(p: Page, view: AttentionView) -> MaskChoices:
    """Draw preset, number or word, and scope; return the mask of these choices and painted cells."""
    choices, words = _current(p, view), [word.text for word in words_of(view.key)]
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="mask controls"):
        near = {"window": "window_encoder"} if view.stack == "encoder" else {}
        _buttons(p, "preset", {name: near.get(name, name) for name in presets(view)}, choices.preset)
        _buttons(p, "scope", {name: name for name in ("all", "layer")}, "all" if choices.everywhere else "layer")
        if choices.preset == "window":
            longest = max(2, len(view.key))
            _set("mask size", min(choices.size, longest))
            st.slider(p.text["size"], 1, longest, key="mask size", on_change=_report, args=("size",), width=260)
        if choices.preset == "word":
            _set("mask word", choices.word)
            names = [label_in_words(word) for word in words]
            # The button beside it says what it is for; its label would push the map's legend below the first screen.
            more = {"key": "mask word", "on_change": _report, "args": ("word",), "width": 220}
            more["label_visibility"] = "collapsed"
            st.selectbox(p.text["word"], range(len(words)), format_func=names.__getitem__, **more)
    return choices


def draw_editor(
    p: Page, own: AttentionView, now: AttentionView, choices: MaskChoices, *, of_earlier_output: bool = False
) -> None:
    """Draw the map under the mask, from ``own`` without it and ``now`` with it; strokes paint cells.

    ``of_earlier_output``: the rows are an output that the model no longer generates under the mask.
    """
    drawn = mask_editor(
        now,
        head=p.focus.head,
        own=own.allowed,
        shifted_labels=predicted_labels(p),
        of_earlier_output=of_earlier_output,
        height=330,  # so that its legend remains visible below the first sentence, and above a lesson's bar
    )
    show_mask_editor(drawn, key="mask editor", on_paint=partial(paint, choices.to_texts()))


def take_back(p: Page, choices: MaskChoices) -> None:
    """Draw the buttons that undo the last change, and all changes."""
    first, untouched = len(st.session_state[_HISTORY]) < 2, choices.preset == "own" and not choices.cells
    with st.container(horizontal=True, gap="small"):
        st.button(p.text["undo"], icon=":material/undo:", on_click=_undo, disabled=first, key="mask undo")
        st.button(p.text["reset"], icon=":material/restart_alt:", on_click=_reset, disabled=untouched, key="mask reset")


def paint(begins: Sequence[str], stroke: Stroke) -> None:
    """Add the cells of a stroke to the mask, to ``begins`` if none was chosen: its callback."""
    before = MaskChoices.from_texts(page_state.values(_MASK) or begins)
    choice.put(_MASK, *before.painted(stroke.cells, allowed=stroke.allowed).to_texts())


def _current(p: Page, view: AttentionView) -> MaskChoices:
    """Return the mask of this map.

    Painted cells belong to one sentence and kind of attention; a preset stays.
    """
    of, state = hash((p.checkpoint.fingerprint, view.query.ids, view.key.ids, view.stack, view.kind)), st.session_state
    asked = page_state.values(_MASK)
    choices = MaskChoices.from_texts(asked).fitting(view) if asked else _begin(p, view)
    if asked and state.get(_OF, of) != of and list(asked) == state[_HISTORY][-1]:  # an address contains no mask
        choices = replace(choices, cells={}, word=0)
    texts = list(choices.to_texts())
    if state.get(_OF) != of:
        state[_OF], state[_HISTORY] = of, [texts]
    elif texts != state[_HISTORY][-1]:
        state[_HISTORY] = [*state[_HISTORY][-_MAX_STEPS:], texts]
    if asked:
        choice.correct(_MASK, texts)
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
        for choices in hiding[: 1 if p.checkpoint.is_guest else _TRIES]:  # a third-party model's passes may be slow
            try:
                found = experiment(p.trace, edits_from(p.checkpoint, choices.specs(view)))
                if found.predicts_otherwise and not found.asked.everywhere:
                    return choices
            except NotFiniteError:
                continue
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
    choice.put(_MASK, *changed(choices).to_texts(), page="masks")


def _buttons(p: Page, name: str, options: Mapping[str, str], value: str) -> None:
    """Draw a row of buttons; ``options`` are their names in ``[<name>]``."""
    _set(f"mask {name}", value)
    called, more = p.text[name], {"key": f"mask {name}", "on_change": _report, "args": (name,)}
    st.segmented_control(
        called["label"], list(options), format_func=lambda option: called[options[option]], required=True,
        help=called.get("help"), wrap=True, **more,
    )  # fmt: skip


def _set(key: str, value: object) -> None:
    if st.session_state.get(key) != value:
        st.session_state[key] = value


# ---- the effect -----------------------------------------------------------------------------------------------------


def run_under(p: Page, choices: MaskChoices, own: AttentionView) -> Experiment:
    """Return the run compared with the same run under the mask, and record its Python.

    Raises:
        NotFiniteError: If the activations under the mask are not finite.
    """
    if not (specs := choices.specs(own)):
        return p.calc(experiment, p.trace, name="found")
    edits = p.calc(edits_from, p.checkpoint, specs, name="edits")
    found = p.calc(experiment, p.trace, edits, name="found", shows=(".change, found.mean_kl", ".answer_after.text"))
    changed = p.part(found, "changed")
    p.calc(changed.attention, own.stack, own.layer, own.kind, name="now", shows=(".allowed.astype(int)",))
    return found


def predicted_labels(p: Page) -> Sequence[str] | None:
    """Return the predicted tokens, as labels of the rows of cross-attention; ``None`` for the tokens read."""
    return p.trace.prediction.labels if p.focus.kind == "cross" and p.trace.prediction is not None else None


def is_of_earlier_output(p: Page, found: Experiment) -> bool:
    """Return whether the rows of the map are an output that the model no longer generates under the mask."""
    translates = p.checkpoint.config.kind == "encoder-decoder" and not p.trace.forced
    return translates and p.focus.stack == "decoder" and found.answer_before.text != found.answer_after.text


def say_effect(p: Page, found: Experiment, own: AttentionView, choices: MaskChoices) -> None:
    """Say what the model predicts under the mask, as the first sentence of the page."""
    if found.changed is found.original:
        return
    where = "all" if choices.everywhere else "layer"
    if choices.preset == "word":
        words = words_of(own.key)
        # A word of the source that is blocked for the encoder remains visible to cross-attention, and the reverse.
        of_stack = p.md(f"of_{own.stack}") if len(p.trace.stacks) > 1 else ""
        word = label_in_words(words[choices.word].text)
        cause = p.md(f"blocked_{where}", of_stack=of_stack, word=word, layer=own.layer)
    else:
        cause = p.md(f"masked_{where}", layer=own.layer)
    with st.container(gap="xsmall", key="mask effect"):
        show_consequence(p, found, cause)


def notes(p: Page, now: AttentionView, choices: MaskChoices) -> None:
    """Write notes about this mask: empty rows, no padding to hide, decoding that differs from reading."""
    named = p.trace.prediction if p.focus.kind == "cross" else now.query
    if empty := [token for token, row in zip(named, now.allowed, strict=True) if not row.any()]:
        rows = [p.md("nothing_left_row", token=label_in_words(token.display)) for token in empty[:_MOST_ROWS]]
        if len(empty) > _MOST_ROWS:
            rows.append(p.md("nothing_left_more", count=len(empty) - _MOST_ROWS))
        st.info(p.md("nothing_left", rows=listed(rows)), icon=":material/block:")
    if choices.preset == "no_padding" and not p.focus.pads:
        p.say("never_pads" if p.checkpoint.special.pad is None else "no_pads", small=True, icon="info")
    if choices.preset == "no_causal":
        p.say("ahead", small=True, icon="info")
    if choices.cells:
        p.say("drawn", small=True, count=len(choices.cells))


def difference(p: Page, own: AttentionView, now: AttentionView) -> None:
    """Draw the weights of the head with the mask − without it, on the same tokens."""
    predicted, change = predicted_labels(p), now.weights[p.focus.head] - own.weights[p.focus.head]
    if not change.any():
        p.say("difference_none", small=True)
        return
    show_map(
        value_map(
            change,
            row_labels=predicted or own.query.labels,
            column_labels=own.key.labels,
            row_title=row_title(shifted=predicted is not None),
            column_title=KEY_TITLE,
            scale="diverging",
            title=p.words("difference_title", layer=own.layer, head=p.focus.head),
            value_name=p.words("difference_value"),
            phrase=(PREDICTING if predicted else "", LOOKS_AT),
            height=520,
        ),
        key="mask difference",
    )
    p.say("difference_caption", small=True)


def padding_sandbox(p: Page) -> None:
    """Draw the sentence followed by padding, with the mask and without it, side by side, as numbers."""
    run = replace(p.run, source_pads=0)
    trace = p.trace if run == p.run else p.trace_of(run)
    rows = p.calc(padding_drift, trace, name="rows", shows=("",), wait="wait.padding")
    if not rows:
        p.say("padding_too_long", small=True)
        return
    lengths = [count for count in PADS if count in {row.pads for row in rows}]
    chosen = choice.buttons(
        p.text["pads"], lengths, lengths[len(lengths) // 2], key="sandbox pads", owner=tuple(lengths)
    )
    p.say("padding_text", pads=chosen)
    plain = p.calc(answer_under, p.checkpoint, p.sentence, name="plain")
    for column, name in zip(st.columns(2), ("masked", "unmasked"), strict=True):
        row = next(row for row in rows if (row.pads, row.masked) == (chosen, name == "masked"))
        with column.container(border=True, gap="xsmall", key=f"padding {name}"):
            st.markdown(f"**{p.text[f'padding_{name}']}**")
            change = p.words("padding_change", change=row.change)
            more = {"delta_color": "off", "delta_arrow": "off", "help": p.text["padding_logit_help"]}
            st.metric(p.text["padding_logit"], three_digits(row.logits), change, **more)
            st.markdown(f"##### {listed([' '.join(row.text.split()) or '–'])}")
            if row.text == plain.text:
                p.say("padding_same", small=True)
    if not p.checkpoint.config.has_encoder:
        p.say("padding_decoder")
    table = [
        {
            "pads": row.pads,
            "mask": p.words("column_on" if row.masked else "column_off"),
            "logits": row.logits,
            "change": row.change,
            "answer": " ".join(row.text.split()),
        }
        for row in rows
    ]
    p.table(table, name="padding", caption=p.md("padding_caption") if p.checkpoint.config.n_classes else "")


def formula_and_code(p: Page, now: AttentionView) -> None:
    """Show the formula of masked attention, and the page as code."""
    rule = score_rule(p.checkpoint, now.stack, now.layer, now.kind)
    score = score_formula(rule, r"q_i \cdot k_j", added=" + b_{ij}" if rule.added and not rule.is_of_the_paper else "")
    if rule.window is not None:
        p.say("window", small=True, window=rule.window)
    rows, columns = now.allowed.shape
    blocked = int(np.count_nonzero(~now.allowed))
    p.formula(
        rf"\alpha_i = \text{{softmax}}_{{\,j \in M_i}}\!\left({score}\right), \qquad "
        r"\alpha_{ij} = 0 \;\text{ for } j \notin M_i",
        "formula_caption", rows=rows, columns=columns, blocked=blocked, cells=rows * columns,
    )  # fmt: skip
    p.code(attention_weights, combined_mask, mask_edit)
