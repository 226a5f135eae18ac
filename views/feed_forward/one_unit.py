"""The first view: one unit, the tokens at which it fires, and what it does to the prediction.

Where the model predicts a token or a class, a run without the unit shows which probabilities it changes. Elsewhere, the
words are drawn that the unit promotes.

While the reader has chosen no token, the units are those that can be read, of all stacks and layers; afterwards, the
strongest units of the chosen token in the chosen layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import three_digits, three_digits_alike
from transformer.interventions.prediction_units import (
    PredictionUnit,
    prediction_units,
    predicts_at,
    probabilities_at,
)
from transformer.interventions.silent_units import class_units, without_unit
from transformer.layers.feed_forward_units import Effect, UnitWords
from transformer.layers.readable_units import LEAST_CLOSE, NEAR, WORDS, readable_units
from transformer.predictions.answer_probabilities import prediction_rows, softmax
from transformer.runs.traces import Trace
from ui.compute.store import store
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.focus import FIRST_CHOSEN
from ui.shell.page import Page
from ui.shell.strip import is_chosen
from ui.show.figures import show_figure, show_snippet
from ui.words.texts import as_plain, common, quoted_word
from views.feed_forward.feed_forward_view_model import FeedForwardViewModel, feed_forward_view_model
from views.feed_forward.unit_figures import probabilities_changed, unit_firing, unit_promotes
from views.view_models import first_word

READABLE = 4  # units, of all stacks
_PREDICTING = 3  # of these, at most so many that raise what the model predicts at their token
STRONGEST = 6  # units of a chosen token
_NAMED = 3  # words in the sentence above the figure
_CHANGED = 6  # tokens or classes whose probability changes most
_TELLING = 0.01  # change of the probability of a token of the output, below which it is not mentioned
_KEY = "unit_shown"


@dataclass(frozen=True)
class OneUnit:
    """A unit of one layer, at the token where it is looked at.

    Attributes:
        words: What it promotes there; ``None`` if units have no words.
        n_close: How many pairs of the promoted words are close, if that is why the unit is shown.
        of_class: Whether it is shown because it raises the predicted class.
        predicting: What it does to the prediction at its token, if that is why the unit is shown.
    """

    stack: str
    layer: int
    position: int
    unit: int
    words: UnitWords | None = None
    n_close: int | None = None
    of_class: bool = False
    predicting: PredictionUnit | None = None

    @property
    def is_readable(self) -> bool:
        """Whether it is shown for what it does, not because it is strong."""
        return any((self.n_close is not None, self.of_class, self.predicting))

    @property
    def promoted(self) -> tuple[Effect, ...]:
        """The words that the unit promotes most, without single bytes of a character."""
        return tuple(word for word in self.words.up if "⟨" not in word.piece)[:WORDS] if self.words else ()

    @property
    def name(self) -> str:
        """The unit's name in addresses."""
        return f"{self.stack}.{self.layer}.{self.unit}"


def units_that_can_be_read(p: Page) -> tuple[OneUnit, ...]:
    """Return the readable units, first those that raise what is predicted at their token.

    Those of a classifier of texts are the ones that raise its class.
    """
    if p.checkpoint.config.n_classes:
        of_class = store.get(p.run, "class units", lambda: class_units(p.trace, count=READABLE))
        return tuple(OneUnit("encoder", one.layer, one.position, one.unit, of_class=True) for one in of_class)
    return store.get(p.run, "readable units", lambda: _readable(p))


def _readable(p: Page) -> tuple[OneUnit, ...]:
    stack = "decoder" if p.checkpoint.config.has_decoder else "encoder"
    units = [
        OneUnit(stack, one.layer, one.position, one.unit, predicting=one)
        for one in prediction_units(p.trace, count=_PREDICTING)
    ]
    for each in p.trace.stacks:
        units += [
            OneUnit(each, one.layer, one.position, one.words.unit, one.words, one.n_close)
            for one in readable_units(p.trace, each, count=READABLE)
        ]
    return tuple(units[:READABLE])


def needs(p: Page) -> tuple[str, ...]:
    """Return what can be chosen: a stack and a layer only for the units of a chosen token."""
    about_a_token = p.focus.lesson or is_chosen(p.focus) or not units_that_can_be_read(p)
    return ("stack", "layer", "token") if about_a_token else ("token",)


def begins(p: Page) -> tuple[str, int]:
    """Return the initial stack and token: those of the readable unit that is shown, or a word."""
    units = units_that_can_be_read(p)
    if not units:
        return p.focus.stack, first_word(p.trace, p.focus.stack)
    one = next((one for one in units if one.name == choice.value(_KEY)), units[0])
    return one.stack, one.position


def only_stack(p: Page) -> str | None:
    """Return the stack whose tokens are offered: that of the unit, until the reader follows a token."""
    return p.focus.stack if not p.token_is_chosen and units_that_can_be_read(p) else None


def choose_one_unit(p: Page) -> OneUnit:
    """Draw a button per unit, and return the chosen unit."""
    reads = not p.token_is_chosen and units_that_can_be_read(p)
    units = reads or _strongest(p)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(p.text["choose_unit"], width="content")
        names = {one.name: _title(p, one) if reads else str(one.unit) for one in units}
        twice = [label for label in names.values() if list(names.values()).count(label) > 1]
        names |= {one.name: f"{names[one.name]} ({one.unit})" for one in units if names[one.name] in twice}
        chosen = choice.buttons(
            p.text["unit"],
            list(names),
            next(iter(names)),
            key=_KEY,
            owner=tuple(names),
            pills=True,
            format_func=names.__getitem__,
            label_visibility="collapsed",
            width="content",
            wrap=True,
        )
        if not reads and units_that_can_be_read(p):
            look = {"type": "tertiary", "icon": ":material/arrow_back:"}
            st.button(p.text["to_readable"], key="readable units", on_click=_forget_the_token, **look)
    return next((one for one in units if one.name == chosen), units[0])


def _title(p: Page, one: OneUnit) -> str:
    """Return what a unit's button says: "ange → chaque", "every ≈ everyone" where it resembles a word."""
    resembles = one.n_close is not None and one.words is not None and not one.words.logits
    token = p.trace.tokens(one.stack)[one.position].display
    word = _predicted(p, one)[1] if one.of_class or one.predicting else _others(one, token)[0]
    return p.text["fires_near" if resembles else "fires_at"].format(token=as_plain(token), word=as_plain(word))


def _word(piece: str) -> str:
    return piece.removeprefix("·")


def _others(one: OneUnit, token: str) -> list[str]:
    """Return the promoted words without the token itself, if there are others."""
    words = [_word(word.piece) for word in one.promoted]
    return [word for word in words if word != _word(token)] or words


def _predicts(p: Page, one: OneUnit) -> bool:
    """Return whether the model predicts a class, or a token at the unit's position."""
    return bool(p.checkpoint.config.n_classes) or predicts_at(p.trace, one.stack, one.position)


def _probabilities(p: Page, one: OneUnit) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of every class or next token, with and without the unit."""
    if one.predicting is not None:
        return one.predicting.before, one.predicting.after

    def of(run: Trace) -> np.ndarray:
        if p.checkpoint.config.n_classes:
            return softmax(run.values("classifier.logits"))
        return probabilities_at(run, one.stack, one.position)

    def without() -> np.ndarray:
        return of(without_unit(p.trace, one.stack, one.layer, one.unit))

    return of(p.trace), store.get(p.run, ("probabilities without", one.name, one.position), without)


def _predicted(p: Page, one: OneUnit) -> tuple[int, str]:
    """Return the index and the name of the class or token that is predicted."""
    best = int(_probabilities(p, one)[0].argmax())
    return best, _names(p, [best])[0]


def _names(p: Page, indices: Sequence[int]) -> list[str]:
    if p.checkpoint.config.n_classes:
        return [p.checkpoint.config.class_names[index] for index in indices]
    return [_word(p.checkpoint.tokenizer.display(index)) for index in indices]


def _strongest(p: Page) -> tuple[OneUnit, ...]:
    """Return the strongest units of the focused token in the focused layer."""
    focus = p.focus
    view_model = feed_forward_view_model(p.trace, stack=focus.stack, layer=focus.layer, token=focus.token)
    units = view_model.strongest[:STRONGEST]
    has_words = view_model.why_no_words is None
    words: Sequence[UnitWords | None] = view_model.words[:STRONGEST] if has_words else [None] * len(units)
    place = (view_model.stack, view_model.layer, view_model.token)
    return tuple(OneUnit(*place, unit, of_unit) for unit, of_unit in zip(units, words, strict=True))


def _forget_the_token() -> None:
    choice.put(FIRST_CHOSEN)
    shared_focus.change(token=0)


def one_unit(p: Page, view_model: FeedForwardViewModel, one: OneUnit) -> None:
    """Draw where the unit fires and, beside it, the words that it promotes."""
    text, tokens, words = p.text, view_model.tokens, one.words
    st.markdown(_claim(p, view_model, one))
    values = view_model.hidden[:, one.unit]
    predicts = _predicts(p, one)
    left, right = st.columns(2, gap="medium") if words or predicts else (st.container(), None)
    with left:
        st.markdown(f"**{text['figure_fires'].format(unit=one.unit)}**")
        show_figure(
            unit_firing(values, tokens=tokens, followed=one.position),
            name="where-a-unit-fires",
            caption="" if right is not None else _caption(p, view_model, one),
            alt=text["fires_alt"],
        )
    if right is not None:
        with right:
            if predicts:
                _draw_changes(p, one)
            else:
                _draw_words(p, one)
        st.caption(_caption(p, view_model, one), help=_neighbours(p, one))
    show_snippet("one unit", p.preamble + _snippet(one))


def _draw_changes(p: Page, one: OneUnit) -> None:
    """Draw the probabilities that the unit changes most."""
    before, after = _probabilities(p, one)
    change = before - after
    most = sorted(np.argsort(-np.abs(change), kind="stable")[:_CHANGED].tolist(), key=lambda index: -change[index])
    title = "figure_classes" if p.checkpoint.config.n_classes else "figure_changes"
    token = as_plain(p.trace.tokens(one.stack)[one.position].display)
    st.markdown(f"**{p.text[title].format(unit=one.unit, token=token)}**")
    show_figure(
        probabilities_changed(before[most], after=after[most], names=_names(p, most), axis=p.text["change"]),
        name="probabilities-changed-by-a-unit",
        alt=p.text["changes_alt"],
    )


def _draw_words(p: Page, one: OneUnit) -> None:
    """Draw the words that the unit promotes most."""
    if one.words is None:
        return
    st.markdown(f"**{p.text['figure_raises' if one.words.logits else 'figure_points'].format(unit=one.unit)}**")
    show_figure(
        unit_promotes(
            [word.effect for word in one.promoted],
            words=[_word(word.piece) for word in one.promoted],
            axis=p.text["adds_to_logit" if one.words.logits else "similarity"],
        ),
        name="what-a-unit-promotes",
        alt=p.text["promotes_alt"],
    )


def _claim(p: Page, view_model: FeedForwardViewModel, one: OneUnit) -> str:
    text, token = p.text, as_plain(view_model.tokens[one.position].display)
    if one.is_readable:
        most = int(view_model.hidden[:, one.unit].argmax()) == one.position
        place = {"unit": one.unit, "layer": one.layer, "stack": _of_stack(p, one), "units": whole(view_model.n_units)}
        claim = text["claim_readable" if most else "claim_readable_words"].format(token=token, **place)
    else:
        claim = text["claim_gated" if view_model.is_gated else "claim"].format(
            token=token,
            active=whole(view_model.n_active),
            units=whole(view_model.n_units),
            layer=view_model.layer,
            unit=one.unit,
        )
    if not (p.token_is_chosen or one.is_readable):
        claim = f"{text['none_readable']} {claim}"
    if _predicts(p, one):
        return f"{claim} {_effect(p, one)}"
    if one.words is None:
        length = three_digits(view_model.added_lengths([one.unit])[0])
        return f"{claim} {text['claim_none'].format(length=length)}"
    named = ", ".join(f"**{as_plain(_word(word.piece))}**" for word in one.promoted[:_NAMED])
    claim = f"{claim} {text['claim_logits' if one.words.logits else 'claim_towards'].format(words=named)}"
    return f"{claim} {_effect_on_output(p, one)}".rstrip()


def _effect(p: Page, one: OneUnit) -> str:
    """Say how probable what is predicted would be if the unit were 0 at every token."""
    before, after = _probabilities(p, one)
    best, name = _predicted(p, one)
    what = "class" if p.checkpoint.config.n_classes else "next" if one.stack == "decoder" else "blank"
    return _said_change(p, p.text["predicted"][what], name, float(before[best]), float(after[best]))


def _effect_on_output(p: Page, one: OneUnit) -> str:
    """Say which token of the output the unit changes most, a word if there is one.

    Nothing is said if there is no output, if not all of it is recorded, or if the change is too small to matter.
    """
    rows = prediction_rows(p.trace) if f"{p.trace.stacks[-1]}.logits" in p.trace else None
    if rows is None or not rows.rows or rows.predicts_nothing:
        return ""

    def chosen(run: Trace) -> np.ndarray:
        return np.exp(rows.chosen(rows.log_probabilities(run)))

    before = chosen(p.trace)
    name = ("output without", one.name)
    after = store.get(p.run, name, lambda: chosen(without_unit(p.trace, one.stack, one.layer, one.unit)))
    words = [index for index, name in enumerate(rows.displays) if _word(name).isalnum()] or range(len(rows.ids))
    most = max(words, key=lambda index: abs(before[index] - after[index]))
    if abs(before[most] - after[most]) < _TELLING:
        return ""
    what = p.text["predicted"]["output"]
    return _said_change(p, what, _word(rows.displays[most]), float(before[most]), float(after[most]))


def _said_change(p: Page, what: str, name: str, before: float, after: float) -> str:
    shares = three_digits_alike([before, after])
    said = "claim_keeps" if shares[0] == shares[1] else "claim_raises" if before > after else "claim_lowers"
    name = as_plain(name if any(map(str.isalnum, name)) else quoted_word(name))
    return p.text[said].format(what=what, name=name, before=shares[0], after=shares[1])


def _caption(p: Page, view_model: FeedForwardViewModel, one: OneUnit) -> str:
    text = p.text
    place = {"unit": one.unit, "layer": one.layer, "stack": _of_stack(p, one)}
    said = [text["which_unit"].format(units=whole(view_model.n_units), **place)]
    if _predicts(p, one):
        said.append(text["measured"])
    elif one.words is not None:
        is_last = one.layer == p.trace.n_layers(one.stack) - 1
        logits = "promotes_logits_last" if is_last else "promotes_logits"
        said.append(text[logits if one.words.logits else "promotes_towards"].format(to=text["to_decoder"]))
        if one.n_close is None:
            said.append(text["unrelated"])
        elif one.n_close >= LEAST_CLOSE:
            said.append(text["close_pairs"])
    return " ".join(said)


def _neighbours(p: Page, one: OneUnit) -> str | None:
    """Return what makes the promoted words near neighbours, if the caption calls them so."""
    if one.n_close is None or one.n_close < LEAST_CLOSE:
        return None
    pairs, near = WORDS * (WORDS - 1) // 2, percent(1 / NEAR, decimals=2)
    return p.text["close_pairs_help"].format(close=one.n_close, pairs=pairs, share=near)


def _of_stack(p: Page, one: OneUnit) -> str:
    return p.text["of_stack"].format(stack=common(f"focus.{one.stack}")) if len(p.trace.stacks) > 1 else ""


def _snippet(one: OneUnit) -> str:
    name, place = f"{one.stack}.layers.{one.layer}.feed_forward.hidden", f'"{one.stack}", {one.layer}, {one.position}'
    fires = f'print(trace.values("{name}")[:, {one.unit}])  # one value per token\n'
    if one.words is None:
        return fires
    return (
        f"from transformer.layers.feed_forward_units import unit_words\n\n{fires}"
        f"(words,) = unit_words(trace, {place}, units=[{one.unit}], words={WORDS})\n"
        "print([(word.piece, word.effect) for word in words.up])\n"
    )
