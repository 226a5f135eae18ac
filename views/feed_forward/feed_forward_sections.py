"""The sections of Feed-forward: one unit, then the units of one token, their words, all tokens.

While the reader has chosen no token, the unit is one of those of all layers with the largest direct effect on the
output; afterwards, one of the strongest units of the chosen token in the chosen layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from charts.figures.activation_curve import activation_curve
from charts.figures.bars import Bars, bars, columns
from charts.figures.heat_maps import heat_map
from charts.figures.units import line_of, units_and_words
from charts.toolkit import style
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import lines, three_digits, three_digits_alike
from charts.toolkit.words import localize, say
from transformer.attribution.direct_logit_attribution import predicting_units
from transformer.guests.read_out import read_out_of
from transformer.heads.firing_examples import Firing, unit_firings
from transformer.interventions.silenced_unit import WithAndWithout, unit_effect, unit_effect_on_output
from transformer.layers.feed_forward_units import (
    Effect,
    UnitWords,
    most_active_units,
    norms_on_the_way,
    output_vectors,
    silent_share,
    strongest_units,
    unit_value,
    unit_words,
    why_no_words,
)
from transformer.layers.norms import norm_kind
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.readings import with_task
from transformer.text.tokens import Token
from ui.page.page import Page
from ui.sections.firing_list import show_firings
from ui.sections.sentence_list import SentenceList, sentence_list
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.focus import FIRST_CHOSEN, select_sentence
from ui.shell.openings import opening_of
from ui.shell.strip import is_chosen
from ui.show.figures import show_figure
from ui.words.texts import Marked, common, listed, named_word, plain_word
from views.opening_tokens import second_token

STRONGEST = 12  # units of a token
_OFFERED = 6  # units above the first figure
_IN_ROWS = 8  # of these in the figure of one row per unit
_READ_OUT = 40  # words read out per unit, so that enough remain without single bytes
_CHANGED = 6  # tokens or classes whose probability changes most
_TELLING = 0.01  # change of the probability of a token of the output, below which it is not mentioned
_ACTIVE = 48  # units in the heatmap of all tokens
_BESIDE = 240  # height in pixels of two figures beside each other
_BESIDE_BARS = {"height": _BESIDE, "label_size": style.TEXT_SIZE + 5}
_KEY = "unit_shown"


@dataclass(frozen=True)
class OneUnit:
    """A unit of one layer, and the token at which it is shown.

    Attributes:
        words: What it promotes there; ``None`` if units have no words.
        predicts: Whether it is shown for its direct effect on the output.
    """

    stack: str
    layer: int
    position: int
    unit: int
    words: UnitWords | None = None
    predicts: bool = False

    @property
    def place(self) -> tuple[str, int, int]:
        """Stack, layer and position."""
        return self.stack, self.layer, self.position

    @property
    def module(self) -> str:
        """Name of the layer's module, the prefix of its activations' names."""
        return f"{self.stack}.layers.{self.layer}.feed_forward"

    @property
    def name(self) -> str:
        """The unit's name in addresses."""
        return f"{self.stack}.{self.layer}.{self.unit}"

    def promoted(self, most: int) -> tuple[Effect, ...]:
        """Return the words that the unit promotes most, without single bytes of a character."""
        return tuple(word for word in self.words.up if not _is_bytes(word.piece))[:most] if self.words else ()


def hidden(p: Page, one: OneUnit) -> np.ndarray:
    """Return the values after the activation function: [token, unit]."""
    return p.trace.values(f"{one.module}.hidden")


def pre_activation(p: Page, one: OneUnit) -> np.ndarray:
    """Return the values before the activation function (of the gate, if there is one): [token, unit]."""
    return p.trace.values(f"{one.module}.pre_activation")


def _is_gated(p: Page, one: OneUnit) -> bool:
    """Return whether a third matrix gates the units (SwiGLU and similar)."""
    return f"{one.module}.gate" in p.trace


def _token(p: Page, one: OneUnit) -> Token:
    return p.trace.tokens(one.stack)[one.position]


def _is_bytes(piece: str) -> bool:
    """Return whether a displayed piece is part of a character, hence not readable."""
    return "⟨" in piece


# ---- which unit -----------------------------------------------------------------------------------------------------


def opening_units(p: Page) -> tuple[OneUnit, ...]:
    """Return the units with the largest direct effect on the output; none if it is not recorded."""
    stack = p.trace.stacks[-1]
    if ("classifier.logits" if p.checkpoint.config.n_classes else f"{stack}.logits") not in p.trace:
        return ()
    found = p.calc(predicting_units, p.trace, most=_OFFERED, name="predicting")
    return tuple(OneUnit(stack, one.layer, one.position, one.unit, predicts=True) for one in found)


def _first_shown(p: Page, units: Sequence[OneUnit]) -> OneUnit:
    """Return the unit that the checkpoint's opening names, or the first."""
    opening = opening_of(p.focus.checkpoint).first
    named = (opening.place["layer"], opening.unit) if p.focus.sentence == opening.sentence else None
    return next((one for one in units if (one.layer, one.unit) == named), units[0])


def needs(p: Page) -> tuple[str, ...]:
    """Return what can be chosen: a stack and a layer only for the units of a chosen token."""
    about_a_token = p.focus.lesson or is_chosen(p.focus) or not opening_units(p)
    return ("stack", "layer", "token") if about_a_token else ("token",)


def begins(p: Page) -> tuple[str, int]:
    """Return the initial stack and token: those of the unit that is shown, or the token after the first."""
    units = opening_units(p)
    if not units:
        return p.focus.stack, second_token(p.trace, p.focus.stack)
    one = next((one for one in units if one.name == choice.value(_KEY)), _first_shown(p, units))
    return one.stack, one.position


def only_stack(p: Page) -> str | None:
    """Return the stack whose tokens are offered: that of the unit, until the reader follows a token."""
    return p.focus.stack if not p.token_is_chosen and opening_units(p) else None


def choose_one_unit(p: Page) -> OneUnit:
    """Draw a button per unit, and return the chosen unit."""
    reads = not p.token_is_chosen and opening_units(p)
    place = p.focus.stack, p.focus.layer, p.focus.token
    units = reads or _strongest(p, place)[:_OFFERED]
    names = {one.name: str(one.unit) for one in units}
    if reads:
        names = {one.name: p.md("unit_of_layer", layer=one.layer, unit=str(one.unit)) for one in units}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(p.md("choose_unit"), width="content")
        look = {"label_visibility": "collapsed", "width": "content", "wrap": True, "pills": True}
        first = _first_shown(p, units).name
        chosen = choice.buttons(
            p.text["unit"], list(names), first, key=_KEY, owner=tuple(names), format_func=names.get, **look
        )
        if not reads and opening_units(p):
            look = {"type": "tertiary", "icon": ":material/arrow_back:"}
            st.button(p.text["to_predicting"], key="predicting units", on_click=_forget_the_token, **look)
    return next((one for one in units if one.name == chosen), units[0])


def _strongest(p: Page, place: tuple[str, int, int]) -> tuple[OneUnit, ...]:
    """Return the strongest units of one token in one layer, with their words if they have any."""
    units = p.calc(strongest_units, p.trace, *place, count=STRONGEST, name="units")
    words: Sequence[UnitWords | None] = (None,) * len(units)
    if why_no_words(p.checkpoint, place[0]) is None:
        words = p.calc(unit_words, p.trace, *place, units=units, words=_READ_OUT, name="words", shows=("[0]",))
    return tuple(OneUnit(*place, unit, its) for unit, its in zip(units, words, strict=True))


def _forget_the_token() -> None:
    choice.put(FIRST_CHOSEN)
    shared_focus.change(token=0)


# ---- one unit -------------------------------------------------------------------------------------------------------


def one_unit(p: Page, one: OneUnit) -> None:
    """Draw where the unit fires and, beside it, what it changes or the words that it promotes."""
    st.markdown(_claim(p, one))
    predicts = _predicts(p, one)
    left, right = st.columns(2, gap="medium") if one.words or predicts else (st.container(), None)
    with left:
        p.say("figure_fires", unit=str(one.unit))
        values, tokens = hidden(p, one)[:, one.unit], p.trace.tokens(one.stack)
        colours = [style.CHOSEN if place == one.position else style.BAR for place in range(len(values))]
        written = [three_digits(float(value)) if place == one.position else "" for place, value in enumerate(values)]
        drawn = Bars(values, colours=colours, texts=written)
        show_figure(
            columns(drawn, along=Axis("", tokens.displays), up=say("names.hidden_value"), height=_BESIDE - 110),
            name="where-a-unit-fires",
            caption="" if right is not None else _caption(p, one),
            alt=p.text["fires_alt"],
        )
    if right is not None:
        with right:
            (_draw_changes if predicts else _draw_words)(p, one)
        st.caption(_caption(p, one))


def _predicts(p: Page, one: OneUnit) -> bool:
    """Return whether the model predicts a class, or a token at the unit's position."""
    if p.checkpoint.config.n_classes:
        return True
    if f"{one.stack}.logits" not in p.trace:  # of a long text, only some layers are recorded
        return False
    return one.stack == "decoder" or _token(p, one).role == "mask" or one.predicts


def _effect(p: Page, one: OneUnit) -> WithAndWithout:
    """Return the probability of every class or next token, with and without the unit."""
    place = one.stack, one.layer, one.unit
    return p.calc(unit_effect, p.trace, *place, position=one.position, name="effect", wait="wait.again")


def _names(p: Page, indices: Sequence[int]) -> list[str]:
    if p.checkpoint.config.n_classes:
        return [p.checkpoint.config.class_names[index] for index in indices]
    return [plain_word(p.checkpoint.tokenizer.display(index)) for index in indices]


def _draw_changes(p: Page, one: OneUnit) -> None:
    """Draw the probabilities that the unit changes most."""
    before, after = _effect(p, one)
    change = before - after
    most = sorted(np.argsort(-np.abs(change), kind="stable")[:_CHANGED].tolist(), key=lambda index: -change[index])
    title = "figure_classes" if p.checkpoint.config.n_classes else "figure_changes"
    p.say(title, unit=str(one.unit), token=_token(p, one).display)
    hover = lines(
        "%{y}", f"{say('feed_forward.with_unit')} %{{customdata[0]}}",
        f"{say('feed_forward.without_unit')} %{{customdata[1]}}",
    )  # fmt: skip
    shares = [three_digits_alike([float(before[index]), float(after[index])]) for index in most]
    drawn = Bars(change[most], hover, signed=True, detail=shares)
    show_figure(
        bars(drawn, rows=Axis("", _names(p, most)), across=p.words("change"), **_BESIDE_BARS),
        name="probabilities-changed-by-a-unit",
        alt=p.text["changes_alt"],
    )


def _draw_words(p: Page, one: OneUnit) -> None:
    """Draw the words that the unit promotes most."""
    if one.words is None:
        return
    p.say("figure_raises" if one.words.logits else "figure_points", unit=str(one.unit))
    words = one.promoted(_OFFERED)
    axis = p.words("adds_to_logit" if one.words.logits else "similarity")
    drawn = Bars([word.effect for word in words], colours=style.CHOSEN)
    figure = bars(drawn, rows=Axis("", [plain_word(word.piece) for word in words]), across=axis, **_BESIDE_BARS)
    show_figure(figure, name="what-a-unit-promotes", alt=p.text["promotes_alt"])


def _claim(p: Page, one: OneUnit) -> str:
    units, place = hidden(p, one).shape[-1], {"token": named_word(_token(p, one).display), "unit": str(one.unit)}
    if one.predicts:
        claim = p.md("claim_predicts", units=units, layer=one.layer, stack=_of_stack(p, one), **place)
    else:
        active = int((pre_activation(p, one)[one.position] > 0).sum())
        key = "claim_gated" if _is_gated(p, one) else "claim"
        claim = p.md(key, active=active, units=units, layer=one.layer, **place)
    if _predicts(p, one):
        before, after = _effect(p, one)
        best = int(before.argmax())
        what = "class" if p.checkpoint.config.n_classes else "next" if one.stack == "decoder" else "blank"
        return f"{claim} {_said_change(p, what, _names(p, [best])[0], before[best], after[best])}"
    if one.words is None:
        return f"{claim} {p.md('claim_none', length=_added_lengths(p, [one])[0])}"
    named = listed(Marked(f"**{listed([plain_word(word.piece)])}**") for word in one.promoted(3))
    said = p.md("claim_logits" if one.words.logits else "claim_towards", words=named)
    return f"{claim} {said} {_effect_on_output(p, one)}".rstrip()


def _effect_on_output(p: Page, one: OneUnit) -> str:
    """Say which token of the output the unit changes most, preferably a word; "" for small changes."""
    found = p.calc(unit_effect_on_output, p.trace, one.stack, one.layer, one.unit, name="output", wait="wait.again")
    if found is None:
        return ""
    (before, after), names = found, [plain_word(name) for name in prediction_rows(p.trace).displays]
    words = [index for index, name in enumerate(names) if name.isalnum()] or range(len(names))
    most = max(words, key=lambda index: abs(before[index] - after[index]))
    if abs(before[most] - after[most]) < _TELLING:
        return ""
    return _said_change(p, "output", names[most], before[most], after[most])


def _said_change(p: Page, what: str, name: str, before: float, after: float) -> Marked:
    shares = three_digits_alike([float(before), float(after)])
    said = "claim_keeps" if shares[0] == shares[1] else "claim_raises" if before > after else "claim_lowers"
    return p.md(said, what=p.md(f"predicted.{what}"), name=named_word(name), before=shares[0], after=shares[1])


def _caption(p: Page, one: OneUnit) -> str:
    units = hidden(p, one).shape[-1]
    said = [p.md("which_unit", unit=str(one.unit), units=units, layer=one.layer, stack=_of_stack(p, one))]
    if _predicts(p, one):
        said.append(p.md("measured"))
    elif one.words is not None:
        is_last = one.layer == p.trace.n_layers(one.stack) - 1
        logits = "promotes_logits_last" if is_last else "promotes_logits"
        said.append(p.md(logits if one.words.logits else "promotes_towards", to=p.md("to_decoder")))
        said.append(p.md("unrelated"))
    return " ".join(said)


def _of_stack(p: Page, one: OneUnit) -> Marked:
    return p.md("of_stack", stack=common(f"focus.{one.stack}")) if len(p.trace.stacks) > 1 else Marked("")


def _added_lengths(p: Page, units: Sequence[OneUnit]) -> list[float]:
    """Return ‖h · w‖ of units of one token: the length of each unit's contribution."""
    numbers = [one.unit for one in units]
    vectors = output_vectors(p.checkpoint, units[0].stack, units[0].layer, numbers)
    values = hidden(p, units[0])[units[0].position, numbers]
    return np.linalg.norm(values[:, None] * vectors, axis=-1).tolist()


# ---- the units of one token -----------------------------------------------------------------------------------------


def strongest(p: Page, one: OneUnit) -> None:
    """Draw one row for each of the strongest units, with the words that it promotes."""
    units = _strongest(p, one.place)[:_IN_ROWS]
    token, read = _token(p, one).display, [its.words for its in units if its.words]
    if read:
        lines = [line_of([word.piece for word in its.promoted(4)]) for its in units]
    else:
        lines = [p.words("adds", length=length) for length in _added_lengths(p, units)]
    kind = "none" if not read else "logits" if read[0].logits else "towards"
    caption = p.md(f"units_caption_{kind}", token=token, to=_goes_to(p))
    if any(_is_bytes(word.piece) for words in read for word in words.up[:4]):
        caption = f"{caption} {p.md('units_bytes')}"
    show_figure(
        units_and_words(
            hidden(p, one)[:, [its.unit for its in units]].T,
            tokens=p.trace.tokens(one.stack),
            followed=one.position,
            units=[p.words("unit_number", unit=str(its.unit)) for its in units],
            words=lines,
            value=p.words("hidden_value"),
        ),
        name="strongest-units-of-a-token",
        caption=caption,
        alt=p.words("units_alt", token=token),
    )


def _goes_to(p: Page) -> Marked:
    return p.md("to_classes" if p.checkpoint.config.n_classes else "to_decoder")


def one_token(p: Page, one: OneUnit) -> None:
    """Draw the token's pre-activations on the activation function, and its largest hidden values."""
    token, gated, activation = _token(p, one).display, _is_gated(p, one), p.checkpoint.config.activation
    before = pre_activation(p, one)[one.position]
    active, units = int((before > 0).sum()), len(before)
    key = "token_line_tanh" if activation == "tanh" else "token_line"
    share = percent((units - active) / units, decimals=1)
    said = p.md(key, token=token, active=active, units=units, inactive=units - active, share=share)
    st.markdown(f"{said} {_inactivity(p, one)}")
    left, right = st.columns(2)
    with left:
        show_figure(
            activation_curve(before, activation=activation, token=token, gated=gated),
            name="activation-of-one-token",
            caption=p.md("curve_caption_gated" if gated else "curve_caption"),
            alt=p.text["curve_alt"],
        )
    with right:
        strongest = [its.unit for its in _strongest(p, one.place)]
        values = hidden(p, one)[one.position]
        # Two lines, so that the title fits a narrow window.
        across = lines(
            say("feed_forward.name_for_token", name=say("names.hidden_value"), token=style.escape(token)),
            say("feed_forward.strongest", shown=len(strongest), n=whole(len(values))),
        )
        drawn = Bars(values[strongest], say("feed_forward.unit", unit="%{y}"), signed=bool((values < 0).any()))
        show_figure(
            bars(drawn, rows=Axis(say("names.unit"), list(map(str, strongest))), across=across),
            name="strongest-units",
            caption=p.md("strongest_caption"),
            alt=p.text["strongest_alt"],
        )
    p.calc(unit_value, p.trace, *one.place, one.unit, name="computed", shows=("",))
    p.calc(p.trace.values, f"{one.module}.hidden", name="recorded", shows=(f"[{one.position}, {one.unit}]",))


def _inactivity(p: Page, one: OneUnit) -> Marked:
    """Return what a pre-activation at or below 0 means for a unit of this model."""
    activation = p.checkpoint.config.activation
    said = p.md(f"inactive_{'gelu' if 'gelu' in activation else activation}")
    return Marked(f"{said} {p.md('inactive_gated')}") if _is_gated(p, one) else said


def words_of_units(p: Page, one: OneUnit) -> None:
    """Draw the words that the strongest units promote: one unit as a figure, all of them as a table."""
    if (reason := why_no_words(p.checkpoint, one.stack)) is not None:
        st.info(localize(reason), icon=":material/info:")
        return
    units, token = _strongest(p, one.place), _token(p, one).display
    all_words = {its.unit: its.words for its in units if its.words}
    words = all_words[choose_unit(p, [its.unit for its in units])]
    axis = p.words("axis_logits" if words.logits else "axis_similarity", unit=str(words.unit))
    shown = sorted((*words.up[:8], *words.down[:8]), key=lambda word: -word.effect)
    drawn = Bars([word.effect for word in shown], signed=True)
    show_figure(
        bars(drawn, rows=Axis(say("names.token"), [word.piece for word in shown]), across=axis),
        name="words-of-a-unit",
        caption=p.md("words_caption", unit=str(words.unit), token=token, hidden=words.hidden),
        alt=p.text["words_alt" if words.logits else "words_alt_encoder"],
    )
    st.markdown(_meaning(p, one, words))
    up, down = ("more probable", "less probable") if words.logits else ("towards", "away from")
    rows = [
        {
            "unit": its.unit,
            "pre-activation": its.pre_activation,
            "hidden": its.hidden,
            "‖h · w‖": its.length,
            up: "  ".join(word.piece for word in its.up[:4]),
            down: "  ".join(word.piece for word in its.down[:4]),
        }
        for its in all_words.values()
    ]
    caption = p.md("words_table_caption" if words.logits else "words_table_caption_encoder", token=token)
    p.table(rows, name="strongest-units-and-words", caption=caption, height="content")
    p.say("words_source", small=True)


def choose_unit(p: Page, units: Sequence[int]) -> int:
    """Draw the buttons of the strongest units of the token in focus."""
    chosen = choice.buttons(p.text["unit"], units, default=units[0], key="unit", owner=tuple(units), wrap=True)
    return chosen if chosen in units else units[0]


def _meaning(p: Page, one: OneUnit, words: UnitWords) -> str:
    if not words.logits:
        return p.md("words_encoder", to=_goes_to(p))
    norm = norm_kind(p.checkpoint, norms_on_the_way(p.trace, one.stack, one.layer)[-1])
    said = p.md("words_logits" if norm == "LayerNorm" else "words_logits_rms")
    cap = read_out_of(p.checkpoint.model, one.stack).cap
    return said if cap is None else f"{said} {p.md('words_cap', cap=cap)}"


def fires(p: Page, one: OneUnit) -> None:
    """List the sentences in which one of the strongest units of the token in focus has its largest values."""
    units = tuple(its.unit for its in _strongest(p, one.place))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        unit = choose_unit(p, units)
        special = choice.toggle(common("fires.special"), key="fires_special", help=common("fires.special_help"))
        read = sentence_list(p)
    found = p.calc(
        unit_firings,
        p.checkpoint,
        read.sentences,
        one.stack,
        one.layer,
        units,
        special=special,
        batch_size=8,  # small, so that a click on "stop" soon takes effect
        name="found",
        slow=True,
        shows=(f"[{unit}][0].value",),
    )
    if found is None:
        return
    p.say("fires_says", unit=str(unit), layer=one.layer, count=len(read.sentences), name=read.name)
    show_firings(p, found[unit], of_unit=True, open_=partial(_open, p, read))
    p.say("fires_source", small=True)


def _open(p: Page, read: SentenceList, one: Firing) -> None:
    select_sentence(with_task(p.checkpoint, read.sentences[one.sentence]), one.key)


# ---- all tokens, and the formula ------------------------------------------------------------------------------------


def all_tokens(p: Page, one: OneUnit) -> None:
    """Draw the inactive share of every layer, and the layer's most active units."""
    tokens, n_units = p.trace.tokens(one.stack), hidden(p, one).shape[-1]
    share = p.calc(silent_share, p.trace, one.stack, name="share", shows=("",))
    layers = [p.words("layer_name", layer=layer) for layer in range(len(share))]
    stack = common(f"focus.{one.stack}")
    show_figure(
        columns(
            [
                Bars(its, f"%{{x}}, {layer}", layer, style.category_colour(place), texts=())
                for place, (layer, its) in enumerate(zip(layers, share, strict=True))
            ],
            along=Axis(say("names.token"), tokens.displays),
            up=say("feed_forward.inactive_axis"),
            limits=(0, 1),
            height=250,
        ),
        name="silent-units",
        caption=p.md("inactive_caption", units=n_units, stack=stack, meaning=_inactivity(p, one)),
        alt=p.text["inactive_alt"],
    )
    what = p.option("heatmap", ["hidden", "pre"], key="unit values")
    units = p.calc(most_active_units, p.trace, one.stack, one.layer, count=_ACTIVE, name="most_active")
    values = (hidden if what == "hidden" else pre_activation)(p, one)[:, units]
    show_figure(
        heat_map(
            values,
            rows=Axis(say("names.token"), tokens.displays),
            columns=Axis(say("feed_forward.some_units"), [str(unit) for unit in units]),
            hover=lines(say("token_position", token="%{y}", place="%{y:d}"), say("feed_forward.unit", unit="%{x}")),
            value=p.words(f"heatmap.{what}"),
            signed=bool((values < 0).any()),
            gap=1,
        ),
        name="most-active-units",
        caption=p.md("heatmap_caption", shown=len(units), units=n_units),
        alt=p.text["heatmap_alt"],
    )


FUNCTIONS = {
    "relu": r"\text{ReLU}",
    "gelu": r"\text{GELU}",
    "gelu_new": r"\text{GELU}_{\tanh}",
    "gelu_tanh": r"\text{GELU}_{\tanh}",
    "quick_gelu": r"\text{GELU}_{\text{quick}}",
    "silu": r"\text{SiLU}",
    "tanh": r"\tanh",
}


def layer_formula(p: Page, one: OneUnit) -> None:
    """Write what the layer computes, with the shapes of this sentence."""
    gated, function = _is_gated(p, one), FUNCTIONS[p.checkpoint.config.activation]
    biased = p.checkpoint.model.get_submodule(f"{one.module}.output_projection").bias is not None
    b = {part: f" + b_{part}" if biased else "" for part in "12g"}
    inner = rf"x W_1{b['1']}"
    inner = rf"\big({function}(x W_g{b['g']}) \odot ({inner})\big)" if gated else rf"{function}({inner})"
    kind = "gated_biased" if gated and biased else "gated" if gated else "biased" if biased else "unbiased"
    p.formula(
        rf"\text{{FFN}}(x) = {inner}\, W_2{b['2']}",
        f"formula_caption.{kind}",
        tokens=len(p.trace.tokens(one.stack)),
        d_model=p.checkpoint.config.d_model,
        units=hidden(p, one).shape[-1],
    )
