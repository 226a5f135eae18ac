"""The exercise “Which bug is this?”: a model and the same model with one of six bugs, or none.

The address holds the exercise (``exercise=bugs``) and the number of its case (``patient=3``), which does not reveal the
bug.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.toolkit.head_names import head_name
from charts.toolkit.numbers import percent
from charts.toolkit.style import three_digits
from transformer.faults import fault_checks, forward_faults
from transformer.faults.catalogue import FAULTS, HEALTHY, TRAINING, Diagnosis, diagnosis_of, inapplicable
from transformer.faults.checked_models import (
    checked_model,
    checked_model_in_training,
    self_attention_in_training,
)
from transformer.faults.fault_checks import CHECKS, Finding
from transformer.faults.faulty_run import all_findings, experiment_with_bug, padded
from transformer.faults.training_faults import HEALTHY as HEALTHY_TRAINING
from transformer.faults.training_faults import TrainedToy, train_and_save, trained_toy
from transformer.interventions.experiment import Experiment
from transformer.predictions.comparison import word_diff
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.lab.effects import mark
from ui.page.page import Page
from ui.shell import choice
from ui.shell.guidance.way import lead_to, mark_opened
from ui.show.drawings import show_map
from ui.show.figures import show_snippet, show_source, show_table
from ui.words.texts import as_plain, common

EXERCISE, BUGS = "exercise", "bugs"  # parameter of the address, and its value for this exercise
NUMBER = "patient"  # parameter of the address: the number of the case
WORD = "gradient"  # what the tiny models copy
_ANSWER = "bug answer"  # the container of the explanation after a guess
_GUESSES, _MOST, _HEIGHT = "bugs: guesses", 9999, 225
_LONGEST = 80  # characters of an output: a model with a bug may repeat one word endlessly
_SOURCES = {
    "scale": (fault_checks.scale, forward_faults.unscaled_scores),
    "positions": (fault_checks.positions, forward_faults.without_positions),
    "causal": (fault_checks.causal, train_and_save),
    "target": (fault_checks.target, train_and_save),
    "padding": (fault_checks.padding, forward_faults.without_padding_mask),
    "norm": (fault_checks.norm, forward_faults.other_norm_order),
    HEALTHY: tuple(CHECKS.values()),
}
_CODE = {  # the right and the wrong line, by bug
    "scale": (
        "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])",
        "scores = query @ key.transpose(-2, -1)",
    ),
    "positions": (
        "stream = self.table(ids) * self.scale + self.position_encoding(n_positions)",
        "stream = self.table(ids) * self.scale",
    ),
    "positions_rotary": (
        "query = self.rotate(self.split_heads(self.query_projection(x)), start)",
        "query = self.split_heads(self.query_projection(x))",
    ),
    "positions_relative": (
        "scores = attention_scores(query, key) + position_bias",
        "scores = attention_scores(query, key)",
    ),
    "causal": (
        "allowed = combined_mask(keys_allowed, n_queries, causal=True)",
        "allowed = combined_mask(keys_allowed, n_queries, causal=False)",
    ),
    "target": (
        "loss = cross_entropy(model(source, target[:, :-1]), target[:, 1:])",
        "loss = cross_entropy(model(source, target[:, :-1]), target[:, :-1])",
    ),
    "padding": (
        "allowed = combined_mask(padding_mask(ids, pad_id), n_queries, causal=False)",
        "allowed = torch.ones(batch, n_queries, n_keys, dtype=torch.bool)",
    ),
    "norm": (
        "stream = stream + sublayer(norm(stream))  # pre-norm",
        "stream = norm(stream + sublayer(stream))  # post-norm",
    ),
}
_SCHEMES = {"rotary": "positions_rotary", "relative": "positions_relative", "alibi": "positions_relative"}
_STYLE = """<style>
.st-key-bug-guesses button { padding-inline: 0.45rem; }
.st-key-bug-guesses p { line-height: 1.25; }
.st-key-bug-guesses p > span:last-child { display: block; font-size: 0.85em !important; opacity: 0.8; } /* its sign */
</style>"""


@dataclass(frozen=True)
class Case:
    """The original (first of each pair) and the model that may have the bug of ``diagnosis`` (second).

    Attributes:
        diagnosis: The bug, hidden until the guess.
        outputs: What each of them writes.
        views: The attention of the layer that is shown, in each run.
        location: The head of the maps.
        toys: Both trainings, for a bug in the training of a tiny model.
        experiment: Both runs, for a bug in the forward pass of the checkpoint.
    """

    diagnosis: Diagnosis
    outputs: tuple[str, str]
    views: tuple[AttentionView, AttentionView]
    location: Head
    toys: tuple[TrainedToy, TrainedToy] | None = None
    experiment: Experiment | None = None


def bug_exercise(p: Page) -> None:
    """Draw a case with its outputs and maps; after the guess, the bug, its code and its check."""
    config, text = p.checkpoint.config, p.text[BUGS]
    st.html(_STYLE)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.markdown(f"#### {text['title']}", width="stretch")
        number = int(choice.number(text["case"], 0, _MOST, 0, key=NUMBER, width=120))
        st.button(text["another"], key="another patient", on_click=choice.put, args=(NUMBER, (number + 1) % _MOST))
        st.button(text["leave"], key="leave exercise", type="tertiary", on_click=choice.put, args=(EXERCISE, ""))
    if p.reads_pictures or p.encodes_sentences:
        p.nothing_to_show(text["of_text"].format(name=as_plain(p.checkpoint.name)))
    case = _open_case(p, diagnosis_of(number, config))
    about = text["about_training" if case.toys else "about_checkpoint"]
    st.caption(about.format(name=as_plain(p.checkpoint.name), sentence=as_plain(p.sentence)))
    _show_outputs(p, case)
    guess = _ask(p, case.diagnosis.fault, number)
    if guess:
        _answer(p, case, guess)
    _show_maps(p, case)
    if guess:
        _show_checks(p, case)
    else:
        reasons = [text[f"cannot_{reason}"] for reason in dict.fromkeys(inapplicable(config).values())]
        st.caption(" ".join((text["guess_help"].format(name=as_plain(p.checkpoint.name)), *reasons)))


def _open_case(p: Page, diagnosis: Diagnosis) -> Case:
    if diagnosis.in_training:
        toys = trained_toy(HEALTHY_TRAINING), trained_toy(TRAINING.get(diagnosis.fault, HEALTHY_TRAINING))
        written, case_written = (toy.learner.generate(WORD) for toy in toys)
        view, case_view = (self_attention_in_training(toy.learner, WORD)[0] for toy in toys)
        place = Head(view.stack, view.kind, 0, 0)
        return Case(diagnosis, (written, case_written), (view, case_view), place, toys=toys)
    run = padded(p.run, 0 if p.trace.source is None else len(p.trace.source) - p.focus.pads)

    def make() -> Experiment:
        found = experiment_with_bug(load_trace(run), diagnosis.fault)
        _ = found.answer_before, found.answer_after  # computed here, while the page shows its progress
        return found

    found = store.get(run, ("experiment", "fault", diagnosis.fault), make, wait="wait.case")
    place = found.most_changed_head or Head(*found.original.attention_kinds()[0], 0, 0)
    before, after = (one.attention(place.stack, place.layer, place.kind) for one in (found.original, found.changed))
    outputs = found.answer_before.text, found.answer_after.text
    return Case(diagnosis, outputs, (before, after), place, experiment=found)


def _show_outputs(p: Page, case: Case) -> None:
    before, after = [_shortened(text) for text in case.outputs]
    words = as_plain(after)
    if after != before and case.experiment:
        words = "".join(mark(piece) for piece in word_diff(before, after) if piece.fate != "removed").strip() or words
    with st.container(border=True, horizontal=True, key="bug outputs", gap="medium"):
        for name, shown in zip(_names(p), (as_plain(before), words), strict=True):
            with st.container(gap=None, width="stretch"):
                st.caption(name)
                st.markdown(f"##### {shown or common('effect.empty')}")


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _names(p: Page) -> tuple[str, str]:
    return p.text[BUGS]["healthy"], p.text[BUGS]["this_case"]


def _show_maps(p: Page, case: Case) -> None:
    """Draw the head whose map differs most, in both runs, on one scale."""
    text = p.text[BUGS]
    # Rows of cross-attention are named after the tokens that they predict.
    predicted = predicted_rows(case.experiment.original, case.location.kind) if case.experiment else None
    st.markdown(text["maps_training" if case.toys else "maps"])
    with st.grid(2, min_column_width=330):
        for number, (name, view) in enumerate(zip(_names(p), case.views, strict=True)):
            drawn = attention_map(
                view, head=case.location.head, shifted_labels=predicted, of_other_output=True, height=_HEIGHT
            )
            title = f"{name} · {head_name(case.location.layer, case.location.head)}" if case.experiment else name
            show_map(drawn.with_metadata(title=title), key=f"bug map {number}")


def _ask(p: Page, truth: str, number: int) -> str:
    """Offer the options; return the guess, "" if there is none yet."""
    all_guesses, text = st.session_state.setdefault(_GUESSES, {}), p.text[BUGS]
    key = (p.checkpoint.fingerprint, p.sentence, number)
    made = all_guesses.get(key, "")
    with st.container(horizontal=True, key="bug guesses", gap="xsmall"):
        for fault in (*FAULTS, HEALTHY):
            # In this order, because a correct guess has the same key twice.
            marks = {made: ":material/close: ", truth: ":material/check: "}
            st.button(
                f"{marks.get(fault, '') if made else ''}{text[f'name_{fault}']} :small[{text[f'sign_{fault}']}]",
                key=f"guess {fault}",
                type="primary" if made and fault == truth else "secondary",
                disabled=bool(made),
                on_click=_guess,
                args=(key, fault),
            )
    lead_to(_ANSWER)
    return made


def _guess(key: tuple, guess: str) -> None:
    st.session_state[_GUESSES].setdefault(key, guess)
    mark_opened(_ANSWER)


def _answer(p: Page, case: Case, guess: str) -> None:
    """Say whether the guess is right, explain the bug, and show the right and the wrong line of code."""
    text, fault, config = p.text[BUGS], case.diagnosis.fault, p.checkpoint.config
    right, orders = guess == fault, _orders(p)
    why = text[f"why_{fault}"].format(
        **orders, final=text[f"final_{config.norm}"], root=three_digits(config.d_head**0.5), width=config.d_head
    )
    if fault == "positions" and not config.has_encoder:
        why += f" {text['why_positions_decoder']}"
    with st.container(key=_ANSWER):
        names = {"name": text[f"full_{fault}"].format(**orders), "guess": text[f"full_{guess}"].format(**orders)}
        (st.success if right else st.info)(
            text["right" if right else "wrong"].format(**names),
            icon=":material/check:" if right else ":material/close:",
        )
        st.markdown(why)
        if fault != HEALTHY:
            _show_code(p, fault)


def _orders(p: Page) -> dict[str, str]:
    """Return the order of norm and sub-layer in training, and that of the bug “misplaced LayerNorm”."""
    trained = p.checkpoint.config.norm
    run = "post" if trained == "pre" else "pre"
    return {"trained": p.text[BUGS][f"order_{trained}"], "run": p.text[BUGS][f"order_{run}"]}


def _show_code(p: Page, fault: str) -> None:
    text, key = p.text[BUGS], fault
    if fault == "positions":
        key = _SCHEMES.get(p.checkpoint.config.positions, fault)
    lines = _CODE[key]  # in the order of the figures
    if fault == "norm" and p.checkpoint.config.norm == "post":
        lines = lines[::-1]
    with st.grid(2, min_column_width=400):
        for name, line in zip(("code_right", "code_wrong"), lines, strict=True):
            with st.container(gap="xsmall"):
                st.markdown(text[name])
                st.code(line, language="python", wrap_lines=True)


def _show_checks(p: Page, case: Case) -> None:
    """Show all checks with their numbers on this case and on the original, and the code that runs them."""
    text = p.text[BUGS]
    original, found = _findings(p, case)
    st.markdown(f"#### {text['checks']}")
    st.markdown(_in_words(p, case, found, original))
    show_table(
        pd.DataFrame(
            {
                text["column_check"]: [text[f"check_{name}"] for name in CHECKS],
                text["healthy"]: [three_digits(one.value) if (one := original[name]) else "–" for name in CHECKS],
                text["this_case"]: [three_digits(one.value) if (one := found[name]) else "–" for name in CHECKS],
                text["column_fires"]: [_verdict(p, found[name]) for name in CHECKS],
            }
        ),
        name="checks",
        caption=text["checks_caption_training" if case.toys else "checks_caption"],
    )
    show_snippet("bugs", _snippet(p, case.diagnosis))
    show_source(*_SOURCES[case.diagnosis.fault])


def _findings(p: Page, case: Case) -> tuple[Mapping[str, Finding | None], ...]:
    if case.toys:
        return tuple(all_findings(checked_model_in_training(toy.learner, WORD)) for toy in case.toys)
    with_bug = "" if case.diagnosis.fault == HEALTHY else case.diagnosis.fault

    def findings_with(fault: str) -> Mapping[str, Finding | None]:
        return store.get(p.run, ("findings", fault), partial(_check, p, fault), wait="wait.examine")

    return findings_with(""), findings_with(with_bug)


def _check(p: Page, fault: str) -> Mapping[str, Finding | None]:
    return all_findings(checked_model(p.trace, fault))


def _in_words(p: Page, case: Case, found: Mapping[str, Finding | None], original: Mapping[str, Finding | None]) -> str:
    """Describe the check of this bug with its numbers."""
    fault, text = case.diagnosis.fault, p.text[BUGS]
    if fault == HEALTHY:
        return text["told_healthy"]
    one, other = found[fault], original[fault]
    if one is None or other is None:
        return text["told_impossible"]
    values = {"value": three_digits(one.value), "healthy_value": three_digits(other.value), **_orders(p)}
    values |= {name: three_digits(value) for name, value in one.numbers.items()}
    values |= {f"healthy_{name}": three_digits(value) for name, value in other.numbers.items()}
    if case.toys:
        last = case.toys[1].moments[-1]
        values |= {"reported": three_digits(last.reported), "loss": three_digits(last.loss)}
        values |= {"writes": percent(last.writes), "steps": str(last.step)}
    values["sum"] = text[f"sum_{p.checkpoint.config.norm}"]
    values["change"] = text["same" if case.outputs[0] == case.outputs[1] else "other"]
    return text[f"told_{fault}"].format(**values)


def _verdict(p: Page, finding: Finding | None) -> str:
    return p.text[BUGS]["not_asked" if finding is None else "fires" if finding.fires else "passes"]


def _snippet(p: Page, diagnosis: Diagnosis) -> str:
    """Return Python code that runs all checks on this case outside of the app."""
    if diagnosis.in_training:
        begin = (
            "from transformer.faults.checked_models import checked_model_in_training\n"
            "from transformer.faults.faulty_run import all_findings\n"
            "from transformer.faults.training_faults import trained_toy\n\n"
            f"toy = trained_toy({TRAINING.get(diagnosis.fault, HEALTHY_TRAINING)!r})\n"
            f"checked = checked_model_in_training(toy.learner, {WORD!r})\n"
        )
    else:
        fault = "" if diagnosis.fault == HEALTHY else diagnosis.fault
        begin = (
            f"{p.preamble}\nfrom transformer.faults.checked_models import checked_model\n"
            f"from transformer.faults.faulty_run import all_findings\n\nchecked = checked_model(trace, {fault!r})\n"
        )
    return begin + "for name, finding in all_findings(checked).items():\n    print(name, finding)\n"
