"""The effect of an edit, shown alike on all pages of the laboratory: both outputs, and the change."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.figures.bars import Bars, bars, columns
from charts.toolkit import style
from charts.toolkit.axes import Axis
from charts.toolkit.style import lines, signed, three_digits, three_digits_alike
from charts.toolkit.words import say
from transformer.interventions.experiment import Expectation, Experiment
from transformer.predictions.answer_probabilities import Answer, PredictionRows, prediction_rows
from transformer.predictions.comparison import Piece, word_diff
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import Trace
from ui.page.page import Page
from ui.shell.choice import one_of
from ui.shell.events import read_aloud
from ui.show.figures import show_figure
from ui.words.texts import Marked, as_plain, common, common_md, named_word, number_text, plain_word
from ui.words.word_diff import around_changes, marked_text

HARDLY = 0.05  # change in log p (5% of p), or in the probability of a prediction, which no headline is built on
_STYLE = Path(__file__).with_name("effects.css")
_END_OF_PROMPT = 60  # characters of a prompt that are shown before its continuation
_LONG = 70  # characters of an output that is cut to the words around its changes
_LONGEST_READ = 24  # characters of the text before a prediction


def _md(key: str, **values: Any) -> Marked:
    return common_md(f"effect.{key}", **values)


def picture_and_answer() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the space for the figure and, next to it (below it in a narrow window), for the effect."""
    st.html(_STYLE)
    with st.container(key="laboratory"):
        picture, beside = st.columns([11, 9], gap="medium")
    return picture, beside


def show_answers(p: Page, found: Experiment) -> None:
    """Show both outputs, large, with removed words (orange, struck out) and new words (blue, bold) below."""
    before, after = found.answer_before, found.answer_after
    read_aloud("answers")
    changed = " ".join(before.text.split()) != " ".join(after.text.split())
    edited = found.changed is not found.original
    with st.container(border=True, gap="xsmall", key="answers"):
        if found.asked.everywhere and edited and not changed:
            say_expectations(found)  # neither run has an output of its own
            return
        _caption("before", before, "sure")
        _show_text(p, before)
        if not edited:
            st.markdown(_md("no_edits"))
            return
        _caption("after", after, "sure_new" if changed else "sure")
        if found.asked.everywhere:
            _show_text(p, after)
            say_expectations(found)
        elif changed:
            st.markdown(f"##### {_marked_difference(p, before, after)}")
            _say_marks(word_diff(before.text, after.text), is_class=bool(p.checkpoint.config.n_classes))
        elif before.parts:
            st.markdown(_md("same_probability", before=before.probability, after=after.probability))
        else:
            st.markdown(_md("same"))


def _caption(key: str, answer: Answer, sure: str) -> None:
    probability = [_md(sure, probability=answer.probability)] if answer.parts else []
    st.caption(" · ".join([_md(key), *probability]))


def show_consequence(p: Page, found: Experiment, cause: Marked) -> None:
    """Show what a change does to the output, as the first sentence of a page, with its changes marked.

    Args:
        p: The page.
        found: The run compared with the changed one.
        cause: The beginning of the sentence: "Without **layer 0, head 1**".
    """
    st.markdown(f"##### {_consequence(p, found, cause)}")
    if found.asked.everywhere and not p.checkpoint.config.has_decoder:
        st.caption(_md("blank_hint"))


def _consequence(p: Page, found: Experiment, cause: Marked) -> str:
    before, after, config = found.answer_before, found.answer_after, p.checkpoint.config
    if before.text != after.text and config.n_classes:
        return _md("then_predicts", cause=cause, before=before.text, after=after.text)
    if before.text != after.text:
        written = _md("then_writes" if config.has_decoder else "then_fills", cause=cause)
        return f"{written} {_marked_difference(p, before, after, brief=True)}"
    if found.predicts_otherwise and (first := _plainest(found)) is not None:
        words = {"cause": cause, "before": plain_word(first.before), "after": plain_word(first.after)}
        if config.has_decoder:
            return _md("then_continues", **words, read=text_up_to(p.trace, first.position))
        return _md("then_replaces", **words, read=plain_word(first.read))
    if found.before.size and abs(found.change) < HARDLY:
        return _md("then_hardly", cause=cause)
    if found.asked.everywhere and found.before.size:
        return _md("then_text", cause=cause, factor=found.factor)
    if not before.parts:
        return _md("then_same", cause=cause)
    key = "then_still" if config.n_classes else "then_stays"
    return _md(key, cause=cause, answer=before.text, before=before.probability, after=after.probability)


def _plainest(found: Experiment) -> Expectation | None:
    """Return the other prediction that changes most, of a whole word if possible, or ``None``."""
    others = [one for one in found.expectations(shown=len(found.asked.rows)) if one.before != one.after]
    others = [one for one in others if abs(one.probability_after - one.probability_before) >= HARDLY]
    whole = [one for one in others if all(word.startswith("·") for word in (one.before, one.after))]
    return next(iter(whole or others), None)


def text_up_to(trace: Trace, position: int) -> str:
    """Return the end of the text that the decoder has read at a position."""
    ids = trace.tokens(trace.stacks[-1]).ids[: position + 1]
    read = " ".join(trace.checkpoint.tokenizer.decode(ids).split())
    if len(read) <= _LONGEST_READ:
        return read
    end = read[-_LONGEST_READ:]
    return f"… {end.partition(' ')[2] or end}"  # from a whole word on


def _marked_difference(p: Page, before: Answer, after: Answer, *, brief: bool = False) -> str:
    """Return two outputs as one text; with ``brief``, a long one is cut to the words around the changes."""
    pieces: Sequence[Piece] = word_diff(before.text, after.text)
    if brief and len(before.text) + len(after.text) > 2 * _LONG:
        pieces = around_changes(pieces)
    # Two texts without any letters may differ in something else, e.g. control characters.
    words = marked_text(pieces) or as_plain(after.text) or _md("empty")
    return _continued(p, words, before, after)


def _say_marks(pieces: Iterable[Piece], *, is_class: bool) -> None:
    """Explain what struck-out and blue words are, if there are any."""
    fates = [fate for fate in ("removed", "added") if fate in {piece.fate for piece in pieces}]
    keys = ["diff_class"] if is_class and len(fates) == 2 else [f"diff_{fate}" for fate in fates]
    if keys:
        st.caption(" ".join(map(_md, keys)))


def _continued(p: Page, words: str, *answers: Answer) -> str:
    """Return the end of the text that a decoder-only model continues, in grey, followed by ``words``."""
    config = p.checkpoint.config
    if config.has_encoder or not config.has_decoder:
        return words
    prompt = " ".join(p.checkpoint.tokenizer.decode(prompt_ids(p.checkpoint, p.trace.sentence)).split())
    if not prompt:
        return words
    prompt = f"… {prompt[-_END_OF_PROMPT:].lstrip()}" if len(prompt) > _END_OF_PROMPT else prompt
    apart = any(not answer.text or answer.parts[0].display.startswith("·") for answer in answers)
    return f":gray[{as_plain(prompt)}]{' ' if apart else ''}{words}"


def say_expectations(found: Experiment) -> None:
    """List the predicted tokens where they change most, for a run without an output."""
    at = "" if found.original.checkpoint.config.has_decoder else "_at"
    st.markdown(_md("expects"))
    for one in found.expectations():
        first, second = three_digits_alike([one.probability_before, one.probability_after])
        key = f"expectation_same{at}" if one.before == one.after else f"expectation{at}"
        words = {"read": named_word(one.read), "before": plain_word(one.before), "after": plain_word(one.after)}
        st.markdown(_md(key, **words, first=first, second=second))


def _show_text(p: Page, answer: Answer) -> None:
    words = as_plain(" ".join(answer.text.split())) or _md("empty")
    st.markdown(f"##### {_continued(p, words, answer)}")


def measured_probability(p: Page) -> str:
    """Return the name of the probability that measures effects on this run, such as "p(your text)"."""
    return common(f"effect.factor{'_forced' if p.trace.forced else _measured(p, prediction_rows(p.trace))}")


def _measured(p: Page, asked: PredictionRows) -> str:
    """Return how keys of texts about the measured probability end: "" for that of an output."""
    return ("_typed" if p.checkpoint.config.has_decoder else "_predicted") if asked.everywhere else ""


def show_numbers(p: Page, effect: Experiment) -> None:
    """Show, collapsed, log p of the original output before and after, the factor, and the mean divergence."""
    if not effect.asked.ids:
        return
    of = _measured(p, effect.asked)
    small = 0 < effect.mean_kl < 0.001
    numbers = (
        (f"factor{of}", f"×{three_digits(effect.factor)}", signed(effect.change)),
        (f"log_p{of}", signed(float(effect.after.sum())), signed(float(effect.before.sum()))),
        ("kl", f"< {three_digits(0.001)}" if small else three_digits(effect.mean_kl), str(len(effect.kl))),
    )
    with st.expander(common("effect.numbers"), expanded=bool(p.focus.lesson)):
        with st.container(horizontal=True, gap="medium", key="numbers"):  # on a phone, in two rows
            for name, value, other in numbers:
                below = _md(f"{name.removesuffix(of) if of else name}_below", value=other)
                more = {"delta_color": "off", "delta_arrow": "off", "help": _md(f"{name}_help"), "width": "content"}
                st.metric(_md(name), value, below, **more)
        if effect.asked.everywhere:
            st.caption(_md(f"everywhere{of}"))
        elif p.trace.forced:
            st.caption(_md("forced"))


def show_steps(p: Page, effect: Experiment) -> None:
    """Show how much each token of the output changes, and the candidates of one step before and after."""
    displays, writes, step = effect.asked.displays, p.checkpoint.config.has_decoder, 0
    if not displays:
        return
    right = st.container()
    if len(displays) > 1:
        left, right = st.columns(2)
        with left:
            st.markdown(f"**{_md('per_token')}**")
            hover = lines(say("numbered_token", token="%{x}", place="%{x:d}"), say("names.kl"))
            along = Axis(say("token_output"), displays)
            figure = columns(Bars(effect.kl, hover), along=along, up=say("names.kl"))
            alt = common("effect.per_token")
            show_figure(figure, name="divergence-per-token", caption=_md("per_token_caption"), alt=alt)
        names = {index: [number_text(index + 1, display)] for index, display in enumerate(displays)}
        more = {"key": "effect step", "owner": effect.asked.ids, "in_list": True}
        with right:
            step = one_of(common("effect.step"), names, int(np.argmax(effect.kl)), **more)
    found = effect.candidates(step)
    before, after = common("effect.before_short"), common("effect.after_short")
    drawn = [
        Bars([one.before for one in found], f"%{{y}}, {before}", before, style.MASKED),
        Bars([one.after for one in found], f"%{{y}}, {after}", after),
    ]
    labels = [f"● {one.display}" if one.chosen else one.display for one in found]
    across = say("names.next_token_probability" if writes else "names.probability")
    with right:
        show_figure(
            bars(drawn, rows=Axis(say("names.candidate"), labels), across=across, limits=(0, 1)),
            name="candidates-before-and-after",
            caption=_md("candidates_caption" if writes else "candidates_caption_at_once"),
            alt=common("effect.candidates_alt"),
        )
