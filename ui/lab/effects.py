"""Effect of an edit, in the same form on all pages of the laboratory: the outputs and the change."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import charts.figures.edit_effects
from charts.toolkit.style import signed, three_digits, three_digits_alike
from transformer.interventions.experiment import Expectation, Experiment
from transformer.predictions.answer_probabilities import Answer
from transformer.predictions.comparison import Piece, word_diff
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import Trace
from ui.lab.experiments import experiment_with
from ui.page.page import Page
from ui.shell.choice import one_of
from ui.shell.guidance.way import read_aloud
from ui.show.figures import show_figure
from ui.words.texts import as_plain, common, number_text

_STYLE = Path(__file__).with_name("effects.css")
_END_OF_PROMPT = 60  # characters of a prompt that are shown before its continuation
_LONG, _BESIDE = 70, 3  # characters of an output that is cut, and the unchanged words that stay beside a change
_LONGEST_READ = 24  # characters of the text before a prediction
_MARKS = {"same": "{}", "removed": ":orange[~~{}~~]", "added": ":blue[**{}**]"}


def picture_and_answer() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the space for the figure and, next to it (below it in a narrow window), for the effect."""
    st.html(_STYLE)
    with st.container(key="laboratory"):
        picture, beside = st.columns([11, 9], gap="medium")
    return picture, beside


def show_answers(p: Page, found: Experiment) -> None:
    """Show both outputs, large, with removed words (orange, struck out) and new words (blue, bold) below."""
    before, after = experiment_with(p.run).answer_before, found.answer_after
    read_aloud("answers")
    changed = " ".join(before.text.split()) != " ".join(after.text.split())
    with st.container(border=True, gap="xsmall", key="answers"):
        if found.asked.everywhere and found.changed is not found.original and not changed:
            say_expectations(found)  # neither run has an output of its own
            return
        st.caption(" · ".join(filter(None, (common("effect.before"), _sure(before, is_new=False)))))
        _show_text(p, before)
        if found.changed is found.original:
            st.markdown(common("effect.no_edits"))
            return
        st.caption(" · ".join(filter(None, (common("effect.after"), _sure(after, is_new=changed)))))
        if found.asked.everywhere:
            _show_text(p, after)
            say_expectations(found)
            return
        if not changed:
            st.markdown(_same(before, after))
            return
        _show_difference(p, before, after)


def show_consequence(p: Page, found: Experiment, cause: str) -> None:
    """Show what a change does to the output, as the first sentence of a page, with its changes marked.

    Args:
        p: The page.
        found: The run compared with the changed one.
        cause: The beginning of the sentence, as Markdown: "Without **layer 0, head 1**".
    """
    before, after, config = found.answer_before, found.answer_after, p.checkpoint.config
    if before.text != after.text and config.n_classes:
        words = {"before": as_plain(before.text), "after": as_plain(after.text)}
        st.markdown("##### " + common("effect.then_predicts", cause=cause, **words))
    elif before.text != after.text:
        said = common("effect.then_writes" if config.has_decoder else "effect.then_fills", cause=cause)
        st.markdown(f"##### {said} {_marked_difference(p, before, after, brief=True)}")
    elif found.predicts_otherwise:
        first = _plainest(found)
        words = {"before": as_plain(_plainly(first.before)), "after": as_plain(_plainly(first.after))}
        key = "effect.then_continues" if config.has_decoder else "effect.then_replaces"
        read = text_up_to(p.trace, first.position) if config.has_decoder else _plainly(first.read)
        st.markdown("##### " + common(key, cause=cause, read=as_plain(read), **words))
    elif found.asked.everywhere or not before.parts:
        st.markdown("##### " + common("effect.then_same", cause=cause))
    else:
        shares = [three_digits(before.probability), three_digits(after.probability)]
        key, answer = "effect.then_still" if config.n_classes else "effect.then_stays", as_plain(before.text)
        st.markdown("##### " + common(key, cause=cause, answer=answer, before=shares[0], after=shares[1]))
    if found.asked.everywhere and not config.has_decoder:
        st.caption(common("effect.blank_hint"))


def _plainest(found: Experiment) -> Expectation:
    """Return the other prediction that changes most, if possible one of whole words."""
    others = [one for one in found.expectations(shown=len(found.asked.rows)) if one.before != one.after]
    whole = (one for one in others if all(word.startswith("·") for word in (one.before, one.after)))
    return next(whole, others[0])


def text_up_to(trace: Trace, position: int) -> str:
    """Return the end of the text that the decoder has read at a position."""
    ids = trace.tokens(trace.stacks[-1]).ids[: position + 1]
    read = " ".join(trace.checkpoint.tokenizer.decode(ids).split())
    if len(read) <= _LONGEST_READ:
        return read
    end = read[-_LONGEST_READ:]
    return f"… {end.partition(' ')[2] or end}"  # from a whole word on


def _show_difference(p: Page, before: Answer, after: Answer) -> None:
    """Show two outputs as one text, with removed and new words marked, and say what the marks mean."""
    st.markdown(f"##### {_marked_difference(p, before, after)}")
    pieces = word_diff(before.text, after.text)
    if legend := _diff_legend(pieces, is_class=bool(p.checkpoint.config.n_classes)):
        st.caption(legend)


def _marked_difference(p: Page, before: Answer, after: Answer, *, brief: bool = False) -> str:
    """Return two outputs as one text; with ``brief``, a long one is cut to the words around the changes."""
    pieces: Sequence[Piece] = word_diff(before.text, after.text)
    if brief and len(before.text) + len(after.text) > 2 * _LONG:
        pieces = _around_changes(pieces)
    # Two texts without any letters may differ in something else, e.g. control characters.
    words = marked_text(pieces) or as_plain(after.text) or common("effect.empty")
    return _continued(p, words, before, after)


def _around_changes(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with "…" in place of unchanged words that are not beside a change."""
    found = []
    for index, piece in enumerate(pieces):
        words = piece.text.split()
        first = _BESIDE if index else 0
        last = _BESIDE if index < len(pieces) - 1 else 0
        if piece.fate == "same" and len(words) > first + last + 1:
            space = " " if piece.text[:1].isspace() else ""
            words = [*words[:first], "…", *words[len(words) - last :]]
            piece = piece._replace(text=space + " ".join(words))
        found.append(piece)
    return found


def _diff_legend(pieces: Iterable[Piece], *, is_class: bool) -> str:
    """Say what struck-out and blue words are, of those that occur."""
    fates = {piece.fate for piece in pieces}
    if is_class and fates >= {"removed", "added"}:
        return common("effect.diff_class")
    return " ".join(common(f"effect.diff_{fate}") for fate in ("removed", "added") if fate in fates)


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


def _same(before: Answer, after: Answer) -> str:
    """Say that the output is the same, and how its probability has changed."""
    if not before.parts:
        return common("effect.same")
    shares = [three_digits(before.probability), three_digits(after.probability)]
    return common("effect.same_probability", before=shares[0], after=shares[1])


def say_expectations(found: Experiment) -> None:
    """List the predicted tokens where they change most, for a run without an output."""
    written = found.original.checkpoint.config.has_decoder
    st.markdown(common("effect.expects"))
    for one in found.expectations():
        shares = three_digits_alike([one.probability_before, one.probability_after])
        values = {"read": one.read, "before": one.before, "after": one.after}
        values = {name: as_plain(_plainly(token)) for name, token in values.items()}
        if written:
            key = "effect.expectation_same" if one.before == one.after else "effect.expectation"
        else:
            key = "effect.expectation_same_at" if one.before == one.after else "effect.expectation_at"
        st.markdown(common(key, **values, first=shares[0], second=shares[1]))


def _plainly(token: str) -> str:
    """Return a token without the dot that stands for its space."""
    return token.removeprefix("·") or token


def marked_text(pieces: Iterable[Piece]) -> str:
    """Return all pieces as one line of Markdown."""
    shown, begun = "", False
    for piece in pieces:
        if shown and not begun and piece.fate == "same":
            shown += " "  # the first word of the new text has no space before it, but a removed first word does
        shown += mark(piece)
        begun = begun or piece.fate != "removed"
    return shown.strip()


def mark(piece: Piece) -> str:
    """Return a piece as Markdown; its spaces are outside of the mark, or Markdown would not recognise it."""
    space = " " if piece.fate != "same" or piece.text[:1].isspace() else ""
    return space + _MARKS[piece.fate].format(as_plain(" ".join(piece.text.split())))


def _show_text(p: Page, answer: Answer) -> None:
    words = as_plain(" ".join(answer.text.split())) or common("effect.empty")
    st.markdown(f"##### {_continued(p, words, answer)}")


def _sure(answer: Answer, *, is_new: bool) -> str:
    key = "effect.sure_new" if is_new else "effect.sure"
    return common(key, probability=three_digits(answer.probability)) if answer.parts else ""


def show_numbers(p: Page, effect: Experiment) -> None:
    """Show, folded, log p of the original output before and after, the factor, and the mean divergence."""
    if not effect.asked.ids:
        return
    before, after = float(effect.before.sum()), float(effect.after.sum())
    written = p.checkpoint.config.has_decoder
    of = ("_typed" if written else "_predicted") if effect.asked.everywhere else ""
    numbers = (
        (f"factor{of}", f"×{three_digits(effect.factor)}", common("effect.factor_below", change=signed(effect.change))),
        (f"log_p{of}", signed(after), common("effect.log_p_before", before=signed(before))),
        (
            "kl",
            f"< {three_digits(0.001)}" if 0 < effect.mean_kl < 0.001 else three_digits(effect.mean_kl),
            common("effect.kl_below", count=len(effect.kl)),
        ),
    )
    with st.expander(common("effect.numbers"), expanded=bool(p.focus.lesson)):
        with st.container(horizontal=True, gap="medium", key="numbers"):  # on a phone, in two rows
            for number in numbers:
                _metric(*number)
        if effect.asked.everywhere:
            st.caption(common("effect.everywhere_typed" if written else "effect.everywhere"))
        elif p.trace.forced:
            st.caption(common("effect.forced"))


def _metric(name: str, value: str, below: str) -> None:
    label, explanation = common(f"effect.{name}"), common(f"effect.{name}_help")
    st.metric(label, value, below, delta_color="off", delta_arrow="off", help=explanation, width="content")


def show_steps(p: Page, effect: Experiment) -> None:
    """Show how much each token of the output changes, and the candidates of one step before and after."""
    displays, writes = effect.asked.displays, p.checkpoint.config.has_decoder
    if not displays:
        return
    several = len(displays) > 1
    left, right = st.columns(2) if several else (st.container(), st.container())
    if several:
        with left:
            st.markdown(f"**{common('effect.per_token')}**")
            show_figure(
                charts.figures.edit_effects.divergence_per_token(effect.kl, labels=displays),
                name="divergence-per-token",
                caption=common("effect.per_token_caption"),
                alt=common("effect.per_token"),
            )
    with right:
        step = 0
        if several:
            strongest = int(effect.kl.argmax())
            names = {index: [number_text(index + 1, display)] for index, display in enumerate(displays)}
            step = one_of(
                common("effect.step"), names, strongest, key="effect step", owner=effect.asked.ids, in_list=True
            )
        rows = pd.DataFrame(effect.candidates(step)).rename(columns={"display": "piece"})
        show_figure(
            charts.figures.edit_effects.candidates_before_and_after(
                rows,
                names=(common("effect.before_short"), common("effect.after_short")),
                axis="next-token probability" if writes else "probability",
            ),
            name="candidates-before-and-after",
            caption=common("effect.candidates_caption" if writes else "effect.candidates_caption_at_once"),
            alt=common("effect.candidates_alt"),
        )
