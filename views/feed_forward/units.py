"""The hidden units of one feed-forward layer: for one token, as words, and for all tokens."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import three_digits
from charts.toolkit.words import in_words
from transformer.layers.feed_forward_units import (
    UnitWords,
    most_active_units,
    norms_on_the_way,
    output_vectors,
    silent_share,
    strongest_units,
    unit_words,
    why_no_words,
)
from transformer.layers.norms import norm_kind
from transformer.text.message import N_
from ui.compute.store import store
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.show.figures import show_figure, show_snippet, show_table
from ui.words.texts import as_plain, common
from views.feed_forward import activation_curve_figure, unit_figures

STRONGEST = 12
_HEATMAP_UNITS = 48
_WORDS = 8  # on each side of the figure
_WORDS_IN_TABLE = 4


def _silent_share(p: Page, stack: str) -> np.ndarray:
    """Of every layer, which a large model runs once more for it: so it is kept."""
    return store.get(p.run, ("silent share", stack), lambda: silent_share(p.trace, stack))


def one_token(p: Page) -> None:
    """Pre-activation, activation, hidden for the focused token, and its strongest units."""
    name = f"{p.focus.stack}.layers.{p.focus.layer}.feed_forward"
    token = p.trace.tokens(p.focus.stack)[p.focus.token]
    share = float(_silent_share(p, p.focus.stack)[p.focus.layer, p.focus.token])
    n_units, activation, gated = p.trace[f"{name}.hidden"].shape[-1], p.checkpoint.config.activation, is_gated(p)
    silent = round(share * n_units)
    st.markdown(
        p.text["token_line" if activation != "tanh" else "token_line_tanh"].format(
            token=as_plain(token.display),
            active=whole(n_units - silent),
            units=whole(n_units),
            silent=whole(silent),
            share=percent(share, decimals=1),
        )
        + f" {silence(p)}"
    )
    both = st.container(horizontal=True)
    with both.container():
        show_figure(
            activation_curve_figure.activation_curve(
                p.trace.values(f"{name}.pre_activation")[p.focus.token],
                activation=activation,
                token=token.display,
                gated=gated,
            ),
            name="activation-of-one-token",
            caption=p.text["curve_caption_gated" if gated else "curve_caption"],
            alt=p.text["curve_alt"],
        )
    with both.container():
        show_figure(
            unit_figures.strongest_units(
                p.trace.values(f"{name}.hidden")[p.focus.token], token=token.display, top=STRONGEST
            ),
            name="strongest-units",
            caption=p.text["strongest_caption"],
            alt=p.text["strongest_alt"],
        )
    unit = strongest_units(p.trace, p.focus.stack, p.focus.layer, p.focus.token, count=1)[0]
    show_snippet("units", _snippet(p, name, unit))


def is_gated(p: Page) -> bool:
    return f"{p.focus.stack}.layers.{p.focus.layer}.feed_forward.gate" in p.trace


def length_of_what_is_added(p: Page, units: Sequence[int]) -> list[float]:
    """‖h · w‖ of each unit for the focused token."""
    stack, layer = p.focus.stack, p.focus.layer
    hidden = p.trace.values(f"{stack}.layers.{layer}.feed_forward.hidden")[p.focus.token, list(units)]
    return np.linalg.norm(hidden[:, None] * output_vectors(p.checkpoint, stack, layer, units), axis=-1).tolist()


def silence(p: Page) -> str:
    """What a pre-activation at or below 0 means for a unit of this model."""
    activation = p.checkpoint.config.activation
    kind = "gelu" if "gelu" in activation else activation
    return p.text[f"silent_{kind}"] + (f" {p.text['silent_gated']}" if is_gated(p) else "")


def words_of_units(p: Page) -> None:
    """What the strongest units of the focused token write: one unit as a figure, all of them as a table."""
    if (reason := why_no_words(p.checkpoint, p.focus.stack)) is not None:
        st.info(in_words(reason), icon=":material/info:")
        return
    place = (p.focus.stack, p.focus.layer, p.focus.token)
    token = as_plain(p.trace.tokens(p.focus.stack)[p.focus.token].display)
    strongest = strongest_units(p.trace, *place, count=STRONGEST)
    found = unit_words(p.trace, *place, units=strongest, words=_WORDS)
    words = found[strongest.index(choose_unit(p, strongest))]
    axis = p.text["axis_logits" if words.logits else "axis_similarity"].format(unit=words.unit)
    show_figure(
        unit_figures.unit_writes(_effects(words), unit=words.unit, axis=axis),
        name="words-of-a-unit",
        caption=p.text["words_caption"].format(unit=words.unit, token=token, hidden=three_digits(words.hidden)),
        alt=p.text["words_alt" if words.logits else "words_alt_encoder"],
    )
    st.markdown(_meaning(p, words))
    show_table(
        pd.DataFrame([_row(words) for words in found]),
        name="strongest-units-and-words",
        caption=p.text["words_table_caption" if words.logits else "words_table_caption_encoder"].format(token=token),
        height="content",
    )
    st.caption(p.text["words_source"])


def choose_unit(p: Page, units: Sequence[int]) -> int:
    """One of the strongest units of the focused token."""
    chosen = choice.buttons(p.text["unit"], units, default=units[0], key="unit", owner=tuple(units), wrap=True)
    return chosen if chosen in units else units[0]


def all_tokens(p: Page) -> None:
    """Silence of every layer, and the most active units of the focused one, for the whole sentence."""
    stack, layer = p.focus.stack, p.focus.layer
    tokens = p.trace.tokens(stack)
    n_units = p.trace[f"{stack}.layers.{layer}.feed_forward.hidden"].shape[-1]
    share = _silent_share(p, stack)
    show_figure(
        unit_figures.silent_share(
            share, tokens=tokens, layers=[p.text["layer_name"].format(layer=index) for index in range(len(share))]
        ),
        name="silent-units",
        caption=p.text["silent_caption"].format(
            units=whole(n_units),
            stack=common(f"focus.{stack}"),
            meaning=silence(p),
        ),
        alt=p.text["silent_alt"],
    )
    what = chosen_option(p.text, "heatmap", ["hidden", "pre"], key="unit values")
    units = most_active_units(p.trace, stack, layer, count=_HEATMAP_UNITS)
    values = p.trace.values(f"{stack}.layers.{layer}.feed_forward.{'hidden' if what == 'hidden' else 'pre_activation'}")
    show_figure(
        unit_figures.hidden_heatmap(
            values[:, units], tokens=tokens, units=units.tolist(), name=p.text[f"heatmap_{what}"]
        ),
        name="most-active-units",
        caption=p.text["heatmap_caption"].format(shown=len(units), units=whole(n_units)),
        alt=p.text["heatmap_alt"],
    )


def _meaning(p: Page, words: UnitWords) -> str:
    if words.logits:
        name = norm_kind(p.checkpoint, norms_on_the_way(p.trace, p.focus.stack, p.focus.layer)[-1])
        capped = getattr(p.checkpoint.model.get_submodule(p.focus.stack).vocabulary_projection, "cap", None)
        said = p.text["words_logits" if name == "LayerNorm" else "words_logits_rms"]
        return said + ("" if capped is None else f" {p.text['words_cap'].format(cap=three_digits(capped))}")
    return p.text["words_encoder"].format(to=p.text["to_classes" if p.checkpoint.config.n_classes else "to_decoder"])


def _effects(words: UnitWords) -> pd.DataFrame:
    return pd.DataFrame([(word.piece, word.effect) for word in (*words.up, *words.down)], columns=["piece", "effect"])


def _row(words: UnitWords) -> dict[str, object]:
    up, down = (N_("likelier"), N_("less likely")) if words.logits else (N_("towards"), N_("away from"))
    return {
        N_("unit"): words.unit,
        N_("pre-activation"): words.pre_activation,
        N_("hidden"): words.hidden,
        "‖h · w‖": words.length,
        up: "  ".join(word.piece for word in words.up[:_WORDS_IN_TABLE]),
        down: "  ".join(word.piece for word in words.down[:_WORDS_IN_TABLE]),
    }


def _snippet(p: Page, name: str, unit: int) -> str:
    read = f"{name}_norm.output"  # pre-norm: the layer reads the normalised stream
    if p.checkpoint.config.norm == "post":
        sublayer = "cross" if f"{name.rsplit('.', 1)[0]}.residual.after_cross_attention" in p.trace else "self"
        read = f"{name.rsplit('.', 1)[0]}.residual.after_{sublayer}_attention"
    hidden = p.trace.values(f"{name}.hidden")[p.focus.token, unit]
    first, value = "input_projection", "layer.activation(pre_activation)"
    if is_gated(p):
        first, value = "gate_projection", f"({value} * {_linear(p, name, 'input_projection')})"
    return (
        f"import torch\n{p.preamble}\n"
        f"position, unit = {p.focus.token}, {unit}\n"
        f'layer = checkpoint.model.get_submodule("{name}")\n'
        f'x = torch.tensor(trace.values("{read}")[position])\n'
        f"pre_activation = {_linear(p, name, first)}\n"
        f"print({value}.item())  # {hidden:.7g}\n"
        f'print(trace.values("{name}.hidden")[position, unit])\n'
    )


def _linear(p: Page, name: str, projection: str) -> str:
    """One unit of one of the layer's matrices in Python, with its bias where there is one."""
    product = f"layer.{projection}.weight[unit] @ x"
    biased = p.checkpoint.model.get_submodule(f"{name}.{projection}").bias is not None
    return f"({product} + layer.{projection}.bias[unit])" if biased else f"({product})"
