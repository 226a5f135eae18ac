"""Steering on the Surgery page: a direction added to the residual stream, compared with random ones."""

from dataclasses import replace

import numpy as np
import streamlit as st

from transformer.errors import InputError, NotExposedError
from transformer.interventions.steering import SEEDS, steering_effect
from transformer.runs.directions import BETWEEN, Steering, direction_of, ordinary_positions
from transformer.runs.edit_specs import EditSpec
from ui.page.page import Page
from ui.sections import sweeps
from ui.shell import choice
from ui.shell.focus import start_of
from ui.words.texts import as_plain, model_sentences, problem_text, slider_format
from views.surgery import edit_list

_STRENGTHS = {"prompts": 2.0, "head": 10.0, "word": 10.0}  # a head and a row of W_U are short beside the stream
_MOST = 100.0
_DECODED = 10  # tokens that every direction lets the model generate, for the estimate of the duration


def add_direction(p: Page) -> None:
    """Draw the choice of a direction, its length, and the button that adds it."""
    focus, config = p.focus, p.checkpoint.config
    writes = focus.stack == "decoder" or not config.has_decoder
    sources = ["prompts", "head", *([("class" if config.n_classes else "word")] if writes else [])]
    chosen = p.option("steer_source", sources, key="steer_source", owner=tuple(sources), help=p.text["steer_help"])
    source = "word" if chosen == "class" else chosen
    with st.container(horizontal=True, vertical_alignment="bottom"):
        last = p.trace.n_layers(focus.stack) - 1
        first = min(focus.layer + (source == "head"), last)
        more = {"owner": (focus.stack, focus.layer, source), "width": 190}
        layer = choice.number(p.text["steer_layer"], 0, last, first, key="steer_layer", **more)
        more = {"owner": source, "help": p.text["steer_strength_help"], "width": 260, "format": slider_format()}
        strength = choice.slider(
            p.text["steer_strength"], -_MOST, _MOST, _STRENGTHS[source], 0.5, key="steer_strength", **more
        )
    texts = _texts(p, source)
    if not all(one.strip() for one in texts):
        return
    steering = Steering(strength, source, texts, (focus.layer, focus.kind, focus.head) if source == "head" else None)
    try:
        direction = p.calc(direction_of, p.checkpoint, focus.stack, layer, replace(steering, strength=1.0), name="d")
    except (InputError, NotExposedError) as error:
        st.warning(as_plain(problem_text(error)), icon=":material/edit:")
        return
    spec = str(EditSpec("steer", focus.stack, layer, "residual", value=str(steering)))
    st.button(p.text["steer_button"], icon=":material/add:", on_click=edit_list.add, args=(spec,))
    stream = p.trace.values(f"{focus.stack}.layers.{layer}.residual.in")[ordinary_positions(p.trace, focus.stack)]
    lengths = {
        "length": abs(strength) * float(np.linalg.norm(direction)),
        "stream": float(np.linalg.norm(stream.astype(np.float64), axis=-1).mean()),
    }
    p.say(f"steer_length.{focus.stack}", small=True, **lengths)


def _texts(p: Page, source: str) -> tuple[str, ...]:
    """Draw the boxes for two prompts or a word; return what the direction is made of."""
    if source == "head":
        return (p.sentence,)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        of_checkpoint = {"owner": p.checkpoint.fingerprint}
        if source == "prompts":
            config = p.checkpoint.config
            task = start_of(p.sentence, p.checkpoint.framing.starts)
            ready = model_sentences()["steer"]["classifier" if config.n_classes else config.kind]
            both = [
                choice.text(p.text[f"steer_{side}"], task + one, key=f"steer_{side}", width=300, **of_checkpoint)
                for side, one in zip(("first", "second"), ready, strict=True)
            ]
            return tuple(" ".join(one.split(BETWEEN.strip())).strip() for one in both)
        if names := p.checkpoint.config.class_names:
            return (choice.select(p.text["steer_class"], names, names[0], key="steer_class", owner=names, width=220),)
        return (choice.text(p.text["steer_word"], key="steer_word", width=220, **of_checkpoint).strip(),)


def compare_with_random(p: Page) -> None:
    """Show what the last direction among the edits does, beside random directions of the same length."""
    found = [spec for spec in map(EditSpec.parse, edit_list.specs()) if spec.action == "steer"]
    if not found:
        return
    spec = found[-1]
    st.subheader(p.text["steer_controls"], anchor=False)
    if len(edit_list.specs()) > 1:
        p.say("steer_last", small=True, edit=edit_list.describe(p, spec))
    name = f"steering {spec}"
    if sweeps.waits(p, name, (len(SEEDS) + 1) * _DECODED):
        sweeps.start_button(p, name, p.words("steer_start", count=len(SEEDS)))
        return
    effect = p.calc(
        steering_effect, p.trace, str(spec), name="steered", slow=True, wait="wait.steer", shows=(".records()",)
    )
    if effect is None:
        return
    kls = [control.kl for control in effect.controls]
    p.say("steer_says", count=len(kls), kl=effect.steered.kl, least=min(kls), most=max(kls))
    if effect.weaker < len(kls):
        p.say("steer_within", stronger=len(kls) - effect.weaker)
    stays = effect.steered.text == effect.before
    p.say("steer_output_stays" if stays else "steer_output_changes", changed=effect.changed, count=len(kls))
    rows = [
        {
            "direction": p.text["steer_this"] if one.seed is None else p.words("steer_random", seed=one.seed),
            "kl": one.kl,
            "change": one.change,
            "gains": one.gains,
            "gain": one.gain,
            "text": " ".join(one.text.split()),
        }
        for one in (effect.steered, *effect.controls)
    ]
    p.table(rows, name="steering", caption=p.md("steer_shows"))
    strength = Steering.parse(spec.value).strength
    p.formula(
        r"x \leftarrow x + c\,d, \qquad d_{\text{random}} = \lVert d\rVert \, \frac{g}{\lVert g\rVert}, \quad "
        r"g \sim \mathcal{N}(0, I)",
        "steer_formula",
        layer=spec.layer, strength=strength, length=effect.length / abs(strength) if strength else 0.0,
    )  # fmt: skip
