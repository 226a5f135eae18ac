"""The first view: one unit, the tokens at which it fires, and what it does to the prediction.

Where the model predicts a token or a class, a run without the unit shows which probabilities it changes. Elsewhere, the
words are drawn that the unit promotes.

While the reader has chosen no token, the units are those of all layers with the largest direct effect on the output;
afterwards, the strongest units of the chosen token in the chosen layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits, three_digits_alike
from transformer.attribution.direct_logit_attribution import predicting_units
from transformer.interventions.experiment import without_unit
from transformer.layers.feed_forward_units import Effect, UnitWords
from transformer.predictions.answer_probabilities import PredictionRows, prediction_rows, softmax
from transformer.runs.traces import Trace
from ui.compute.store import store
from ui.page.page import Page
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.focus import FIRST_CHOSEN
from ui.shell.strip import is_chosen
from ui.show.figures import show_figure, show_snippet
from ui.words.texts import as_plain, common, quoted_word
from views.feed_forward.feed_forward_view_model import FeedForwardViewModel, feed_forward_view_model
from views.feed_forward.unit_figures import probabilities_changed, unit_firing, unit_promotes
from views.view_models import second_token

PREDICTING = 4  # units with the largest direct effect
STRONGEST = 6  # units of a chosen token
_WORDS = 6  # that a unit promotes
_NAMED = 3  # words in the sentence above the figure
_CHANGED = 6  # tokens or classes whose probability changes most
_TELLING = 0.01  # change of the probability of a token of the output, below which it is not mentioned
_KEY = "unit_shown"


@dataclass(frozen=True)
class OneUnit:
    """A unit of one layer, at the token where it is looked at.

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
    def promoted(self) -> tuple[Effect, ...]:
        """The words that the unit promotes most, without single bytes of a character."""
        return tuple(word for word in self.words.up if "⟨" not in word.piece)[:_WORDS] if self.words else ()

    @property
    def name(self) -> str:
        """The unit's name in addresses."""
        return f"{self.stack}.{self.layer}.{self.unit}"


def opening_units(p: Page) -> tuple[OneUnit, ...]:
    """Return the units with the largest direct effect on the output; none if it is not recorded."""
    stack = p.trace.stacks[-1]
    logits = "classifier.logits" if p.checkpoint.config.n_classes else f"{stack}.logits"
    if logits not in p.trace:
        return ()
    found = store.get(p.run, "predicting units", lambda: predicting_units(p.trace, most=PREDICTING))
    return tuple(OneUnit(stack, one.layer, one.position, one.unit, predicts=True) for one in found)


def needs(p: Page) -> tuple[str, ...]:
    """Return what can be chosen: a stack and a layer only for the units of a chosen token."""
    about_a_token = p.focus.lesson or is_chosen(p.focus) or not opening_units(p)
    return ("stack", "layer", "token") if about_a_token else ("token",)


def begins(p: Page) -> tuple[str, int]:
    """Return the initial stack and token: those of the unit that is shown, or the token after the first."""
    units = opening_units(p)
    if not units:
        return p.focus.stack, second_token(p.trace, p.focus.stack)
    one = next((one for one in units if one.name == choice.value(_KEY)), units[0])
    return one.stack, one.position


def only_stack(p: Page) -> str | None:
    """Return the stack whose tokens are offered: that of the unit, until the reader follows a token."""
    return p.focus.stack if not p.token_is_chosen and opening_units(p) else None


def choose_one_unit(p: Page) -> OneUnit:
    """Draw a button per unit, and return the chosen unit."""
    reads = not p.token_is_chosen and opening_units(p)
    units = reads or _strongest(p)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(p.text["choose_unit"], width="content")
        names = {one.name: _title(p, one) if reads else str(one.unit) for one in units}
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
        if not reads and opening_units(p):
            look = {"type": "tertiary", "icon": ":material/arrow_back:"}
            st.button(p.text["to_predicting"], key="predicting units", on_click=_forget_the_token, **look)
    return next((one for one in units if one.name == chosen), units[0])


def _title(p: Page, one: OneUnit) -> str:
    return p.text["unit_of_layer"].format(layer=one.layer, unit=one.unit)


def _word(piece: str) -> str:
    return piece.removeprefix("·")


def _predicts(p: Page, one: OneUnit) -> bool:
    """Return whether the model predicts a class, or a token at the unit's position."""
    if p.checkpoint.config.n_classes:
        return True
    if f"{one.stack}.logits" not in p.trace:  # of a long text, only some layers are recorded
        return False
    return one.stack == "decoder" or p.trace.tokens(one.stack)[one.position].role == "mask" or one.predicts


def _probabilities(p: Page, one: OneUnit) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of every class or next token, with and without the unit."""

    def of(run: Trace) -> np.ndarray:
        if p.checkpoint.config.n_classes:
            return softmax(run.values("classifier.logits"))
        return np.exp(PredictionRows(f"{one.stack}.logits", (one.position,), (), ()).log_probabilities(run)[0])

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
        st.caption(_caption(p, view_model, one))
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
    if one.predicts:
        place = {"unit": one.unit, "layer": one.layer, "stack": _of_stack(p, one), "units": whole(view_model.n_units)}
        claim = text["claim_predicts"].format(token=token, **place)
    else:
        claim = text["claim_gated" if view_model.is_gated else "claim"].format(
            token=token,
            active=whole(view_model.n_active),
            units=whole(view_model.n_units),
            layer=view_model.layer,
            unit=one.unit,
        )
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
        said.append(text["unrelated"])
    return " ".join(said)


def _of_stack(p: Page, one: OneUnit) -> str:
    return p.text["of_stack"].format(stack=common(f"focus.{one.stack}")) if len(p.trace.stacks) > 1 else ""


def _snippet(one: OneUnit) -> str:
    name, place = f"{one.stack}.layers.{one.layer}.feed_forward.hidden", f'"{one.stack}", {one.layer}, {one.position}'
    fires = f'print(trace.values("{name}")[:, {one.unit}])  # one value per token\n'
    if one.words is None:
        return fires
    return (
        f"from transformer.layers.feed_forward_units import unit_words\n\n{fires}"
        f"(words,) = unit_words(trace, {place}, units=[{one.unit}], words={_WORDS})\n"
        "print([(word.piece, word.effect) for word in words.up])\n"
    )
