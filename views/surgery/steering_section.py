"""Steering on the Surgery page: a direction is added to the residual stream, beside random ones."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.errors import InputError, NotExposedError
from transformer.interventions.steering import SEEDS, SteeringEffect, steering_effect
from transformer.runs.directions import BETWEEN, Steering, direction_of, ordinary_positions
from transformer.runs.edit_specs import EditSpec
from transformer.runs.edits import steer
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.lab import sweeps
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.focus import start_of
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain, common, model_sentences, slider_format
from views.surgery import edit_list

_STRENGTHS = {"prompts": 2.0, "head": 10.0, "word": 10.0}  # a head and a row of W_U are short beside the stream
_MOST = 100.0
_DECODED = 10  # tokens that every direction lets the model generate, for the estimate of the duration


def add_direction(p: Page) -> None:
    """Draw the choice of a direction, its length, and the button that adds it."""
    focus, config, text = p.focus, p.checkpoint.config, p.text
    writes = focus.stack == "decoder" or not config.has_decoder
    word = "class" if config.n_classes else "word"
    sources = ["prompts", "head", *([word] if writes else [])]
    chosen = chosen_option(
        text, "steer_source", sources, key="steer_source", owner=tuple(sources), help=text["steer_help"]
    )
    source = "word" if chosen == "class" else chosen
    with st.container(horizontal=True, vertical_alignment="bottom"):
        layers = p.trace.n_layers(focus.stack)
        layer = choice.number(
            text["steer_layer"],
            0,
            layers - 1,
            min(focus.layer + (source == "head"), layers - 1),
            key="steer_layer",
            owner=(focus.stack, focus.layer, source),
            width=190,
        )
        strength = choice.slider(
            text["steer_strength"],
            -_MOST,
            _MOST,
            _STRENGTHS[source],
            0.5,
            slider_format(),
            key="steer_strength",
            owner=source,
            help=text["steer_strength_help"],
            width=260,
        )
    texts = _texts(p, source)
    if not all(one.strip() for one in texts):
        return
    head = (focus.layer, focus.kind, focus.head) if source == "head" else None
    steering = Steering(strength, source, texts, head)
    try:
        length = _length(p, focus.stack, layer, steering)
    except (InputError, NotExposedError) as error:
        st.warning(as_plain(problem_text(error)), icon=":material/edit:")
        return
    spec = str(EditSpec("steer", focus.stack, layer, "residual", value=str(steering)))
    st.button(text["steer_button"], icon=":material/add:", on_click=edit_list.add, args=(spec,))
    stream = p.trace.values(f"{focus.stack}.layers.{layer}.residual.in")[ordinary_positions(p.trace, focus.stack)]
    st.caption(
        text["steer_length_generated" if focus.stack == "decoder" else "steer_length"].format(
            length=three_digits(abs(strength) * length),
            stream=three_digits(float(np.linalg.norm(stream.astype(np.float64), axis=-1).mean())),
            stack=common(f"diagram.{focus.stack}").lower(),
        )
    )


def _length(p: Page, stack: str, layer: int, steering: Steering) -> float:
    """Return ‖d‖."""
    source = replace(steering, strength=1.0)
    name = ("steering direction", stack, layer, source)
    return store.get(
        p.checkpoint, name, lambda: float(np.linalg.norm(direction_of(p.checkpoint, stack, layer, source)))
    )


def _texts(p: Page, source: str) -> tuple[str, ...]:
    """Draw the boxes for two prompts or a word; return what the direction is made of."""
    text = p.text
    if source == "head":
        return (p.sentence,)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if source == "prompts":
            both = [
                choice.text(
                    text[f"steer_{side}"], default=ready, key=f"steer_{side}", owner=p.checkpoint.fingerprint, width=300
                )
                for side, ready in zip(("first", "second"), _ready_prompts(p), strict=True)
            ]
            return tuple(" ".join(one.split(BETWEEN.strip())).strip() for one in both)
        if names := p.checkpoint.config.class_names:
            return (choice.select(text["steer_class"], names, names[0], key="steer_class", owner=names, width=220),)
        return (choice.text(text["steer_word"], key="steer_word", owner=p.checkpoint.fingerprint, width=220).strip(),)


def _ready_prompts(p: Page) -> tuple[str, str]:
    """Return two prompts that differ in one respect, such as the number of a noun."""
    config = p.checkpoint.config
    kind = "classifier" if config.n_classes else config.kind
    task = start_of(p.sentence, p.checkpoint.framing.starts)
    first, second = (task + one for one in model_sentences()["steer"][kind])
    return first, second


def compare_with_random(p: Page) -> None:
    """Show what the last direction among the edits does, beside random directions of the same length."""
    found = [spec for spec in map(EditSpec.parse, edit_list.specs()) if spec.action == "steer"]
    if not found:
        return
    text, trace, spec = p.text, p.trace, found[-1]
    st.subheader(text["steer_controls"], anchor=False)
    if len(edit_list.specs()) > 1:
        st.caption(text["steer_last"].format(edit=edit_list.describe(spec, text)))
    name, count = ("steering", str(spec)), len(SEEDS) + 1
    if sweeps.waits(p, name, count * _DECODED):
        sweeps.start_button(p, name, text["steer_start"].format(count=len(SEEDS)))
        return
    effect = jobs.result(
        p.run,
        name,
        lambda report: steering_effect(trace, spec, progress=report),
        saying=lambda done, total: text["steer_measuring"].format(done=done, total=total),
        passes=count,
    )
    if effect is not None:
        _show(p, effect)


def _in_words(p: Page, effect: SteeringEffect) -> Iterator[str]:
    """Yield how the direction compares with the random ones, in KL and in the output."""
    text, kls = p.text, [control.kl for control in effect.controls]
    count = whole(len(kls))
    numbers = {"kl": effect.steered.kl, "least": min(kls), "most": max(kls)}
    yield text["steer_says"].format(count=count, **{name: three_digits(value) for name, value in numbers.items()})
    if stronger := len(kls) - effect.weaker:
        yield text["steer_within"].format(stronger=whole(stronger))
    stays = effect.steered.text == effect.before
    yield text["steer_output_stays" if stays else "steer_output_changes"].format(
        changed=whole(effect.changed), count=count
    )


def _show(p: Page, effect: SteeringEffect) -> None:
    text = p.text
    st.markdown(" ".join(_in_words(p, effect)))
    rows = [
        {
            "direction": text["steer_this"] if one.seed is None else text["steer_random"].format(seed=one.seed),
            "kl": one.kl,
            "change": one.change,
            "gains": one.gains,
            "gain": one.gain,
            "text": " ".join(one.text.split()),
        }
        for one in (effect.steered, *effect.controls)
    ]
    show_table(pd.DataFrame(rows).rename(columns=text["steer_column"]), name="steering", caption=text["steer_shows"])
    steering = Steering.parse(effect.edit.value)
    length = effect.length / abs(steering.strength) if steering.strength else 0.0
    show_formula(
        text["steer_formula"],
        caption=text["steer_formula_caption"].format(
            layer=effect.edit.layer, strength=three_digits(steering.strength), length=three_digits(length)
        ),
    )
    show_snippet(
        "steering",
        f"{p.preamble}\nfrom transformer.interventions.steering import steering_effect\n\n"
        f"found = steering_effect(trace, {str(effect.edit)!r})\n"
        "for row in found.records():\n"
        "    print(row)\n",
    )
    show_source(steer, direction_of, steering_effect)
