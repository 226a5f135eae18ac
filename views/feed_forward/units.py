"""The hidden units of one feed-forward layer: for one token, as words, for all tokens."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import three_digits
from charts.toolkit.words import localize
from transformer.layers.feed_forward_units import UnitWords
from ui.compute.store import store
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.show.figures import show_figure, show_formula, show_snippet, show_table
from ui.words.texts import PageText, as_plain, common
from views.feed_forward import activation_curve_figure, unit_figures
from views.feed_forward.feed_forward_view_model import FeedForwardViewModel

_WORDS = 8  # words on each side of the figure
_WORDS_IN_TABLE = 4
FUNCTIONS = {
    "relu": r"\text{ReLU}",
    "gelu": r"\text{GELU}",
    "gelu_new": r"\text{GELU}_{\tanh}",
    "gelu_tanh": r"\text{GELU}_{\tanh}",
    "quick_gelu": r"\text{GELU}_{\text{quick}}",
    "silu": r"\text{SiLU}",
    "tanh": r"\tanh",
}


def one_token(p: Page, view_model: FeedForwardViewModel) -> None:
    """Draw the token's pre-activations on the activation function, and its largest hidden values."""
    text, token, gated = p.text, view_model.focused, view_model.is_gated
    inactive = view_model.n_units - view_model.n_active
    st.markdown(
        text["token_line" if view_model.activation != "tanh" else "token_line_tanh"].format(
            token=as_plain(token.display),
            active=whole(view_model.n_active),
            units=whole(view_model.n_units),
            inactive=whole(inactive),
            share=percent(inactive / view_model.n_units, decimals=1),
        )
        + f" {_inactivity(view_model, text)}"
    )
    left, right = st.columns(2)
    with left:
        show_figure(
            activation_curve_figure.activation_curve(
                view_model.pre_activation[view_model.token],
                activation=view_model.activation,
                token=token.display,
                gated=gated,
            ),
            name="activation-of-one-token",
            caption=text["curve_caption_gated" if gated else "curve_caption"],
            alt=text["curve_alt"],
        )
    with right:
        values = view_model.hidden[view_model.token]
        show_figure(
            unit_figures.strongest_units(values, token=token.display, top=len(view_model.strongest)),
            name="strongest-units",
            caption=text["strongest_caption"],
            alt=text["strongest_alt"],
        )
    show_snippet("units", _snippet(p, view_model))


def _inactivity(view_model: FeedForwardViewModel, text: PageText) -> str:
    """Return what a pre-activation at or below 0 means for a unit of this model."""
    kind = "gelu" if "gelu" in view_model.activation else view_model.activation
    return text[f"inactive_{kind}"] + (f" {text['inactive_gated']}" if view_model.is_gated else "")


def words_of_units(p: Page, view_model: FeedForwardViewModel) -> None:
    """Draw the words that the strongest units promote: one unit as a figure, all of them as a table."""
    if (reason := view_model.why_no_words) is not None:
        st.info(localize(reason), icon=":material/info:")
        return
    text, token = p.text, as_plain(view_model.focused.display)
    words = view_model.words[view_model.strongest.index(choose_unit(p, view_model.strongest))]
    axis = text["axis_logits" if words.logits else "axis_similarity"].format(unit=words.unit)
    show_figure(
        unit_figures.unit_writes(_effects(words), unit=words.unit, axis=axis),
        name="words-of-a-unit",
        caption=text["words_caption"].format(unit=words.unit, token=token, hidden=three_digits(words.hidden)),
        alt=text["words_alt" if words.logits else "words_alt_encoder"],
    )
    st.markdown(_meaning(view_model, words, text))
    show_table(
        pd.DataFrame([_row(words) for words in view_model.words]),
        name="strongest-units-and-words",
        caption=text["words_table_caption" if words.logits else "words_table_caption_encoder"].format(token=token),
        height="content",
    )
    st.caption(text["words_source"])


def choose_unit(p: Page, units: Sequence[int]) -> int:
    """Draw the buttons of the strongest units of the token in focus."""
    chosen = choice.buttons(p.text["unit"], units, default=units[0], key="unit", owner=tuple(units), wrap=True)
    return chosen if chosen in units else units[0]


def all_tokens(p: Page, view_model: FeedForwardViewModel) -> None:
    """Draw the inactive share of every layer, and the focused layer's most active units."""
    text, stack, tokens, n_units = p.text, view_model.stack, view_model.tokens, whole(view_model.n_units)
    share = store.get(p.run, ("inactive share", stack), view_model.inactive_share)
    show_figure(
        unit_figures.silent_share(
            share, tokens=tokens, layers=[text["layer_name"].format(layer=index) for index in range(len(share))]
        ),
        name="silent-units",
        caption=text["inactive_caption"].format(
            units=n_units, stack=common(f"focus.{stack}"), meaning=_inactivity(view_model, text)
        ),
        alt=text["inactive_alt"],
    )
    what = chosen_option(text, "heatmap", ["hidden", "pre"], key="unit values")
    units = view_model.most_active
    values = view_model.hidden if what == "hidden" else view_model.pre_activation
    show_figure(
        unit_figures.hidden_heatmap(
            values[:, units], tokens=tokens, units=units.tolist(), name=text[f"heatmap_{what}"]
        ),
        name="most-active-units",
        caption=text["heatmap_caption"].format(shown=len(units), units=n_units),
        alt=text["heatmap_alt"],
    )


def layer_formula(view_model: FeedForwardViewModel, text: PageText) -> None:
    """Write what the layer computes, with the shapes of this sentence."""
    gated, biased, function = view_model.is_gated, view_model.is_biased, FUNCTIONS[view_model.activation]
    b = {part: f" + b_{part}" if biased else "" for part in "12g"}
    inner = rf"x W_1{b['1']}"
    inner = rf"\big({function}(x W_g{b['g']}) \odot ({inner})\big)" if gated else rf"{function}({inner})"
    caption = text["formula_caption_gated" if gated else "formula_caption" if biased else "formula_caption_unbiased"]
    if gated and biased:
        caption += f" {text['formula_biases_gated']}"
    sizes = {"width": view_model.checkpoint.config.d_model, "units": whole(view_model.n_units)}
    show_formula(
        rf"\text{{FFN}}(x) = {inner}\, W_2{b['2']}", caption=caption.format(tokens=len(view_model.tokens), **sizes)
    )


def _meaning(view_model: FeedForwardViewModel, words: UnitWords, text: PageText) -> str:
    if words.logits:
        projection = view_model.checkpoint.model.get_submodule(view_model.stack).vocabulary_projection
        capped = getattr(projection, "cap", None)
        said = text["words_logits" if view_model.norm_on_the_way == "LayerNorm" else "words_logits_rms"]
        return said + ("" if capped is None else f" {text['words_cap'].format(cap=three_digits(capped))}")
    classes = view_model.checkpoint.config.n_classes
    return text["words_encoder"].format(to=text["to_classes" if classes else "to_decoder"])


def _effects(words: UnitWords) -> pd.DataFrame:
    shown = (*words.up[:_WORDS], *words.down[:_WORDS])
    return pd.DataFrame([(word.piece, word.effect) for word in shown], columns=["piece", "effect"])


def _row(words: UnitWords) -> dict[str, object]:
    up, down = ("more probable", "less probable") if words.logits else ("towards", "away from")
    return {
        "unit": words.unit,
        "pre-activation": words.pre_activation,
        "hidden": words.hidden,
        "‖h · w‖": words.length,
        up: "  ".join(word.piece for word in words.up[:_WORDS_IN_TABLE]),
        down: "  ".join(word.piece for word in words.down[:_WORDS_IN_TABLE]),
    }


def _snippet(p: Page, view_model: FeedForwardViewModel) -> str:
    name, unit = view_model.name, view_model.strongest[0]
    first, value = "input_projection", "layer.activation(pre_activation)"
    if view_model.is_gated:
        first, value = "gate_projection", f"({value} * {_linear(view_model, 'input_projection')})"
    return (
        f"import torch\n{p.preamble}\n"
        f"position, unit = {view_model.token}, {unit}\n"
        f'layer = checkpoint.model.get_submodule("{name}")\n'
        f'x = torch.tensor(trace.values("{view_model.read}")[position])\n'
        f"pre_activation = {_linear(view_model, first)}\n"
        f"print({value}.item())  # {view_model.hidden[view_model.token, unit]:.7g}\n"
        f'print(trace.values("{name}.hidden")[position, unit])\n'
    )


def _linear(view_model: FeedForwardViewModel, projection: str) -> str:
    """Return Python for one unit of one of the layer's matrices, with its bias if there is one."""
    product = f"layer.{projection}.weight[unit] @ x"
    biased = view_model.checkpoint.model.get_submodule(f"{view_model.name}.{projection}").bias is not None
    return f"({product} + layer.{projection}.bias[unit])" if biased else f"({product})"
