"""The exercise “Which bug is this?”: a model and the same model with one of six bugs, or none.

The address holds the exercise (``exercise=bugs``) and the number of its case (``patient=3``), which does not reveal the
bug.
"""

from dataclasses import dataclass

import streamlit as st

from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.toolkit.head_names import head_name
from charts.toolkit.style import three_digits
from transformer.faults import fault_checks, forward_faults
from transformer.faults.catalogue import Diagnosis, diagnosis_of, inapplicable
from transformer.faults.fault_checks import (
    CHECKS,
    Findings,
    findings_in_training,
    findings_with,
    self_attention_in_training,
)
from transformer.faults.forward_faults import padded_with_bug
from transformer.faults.training_faults import outcome, train_and_save, trained_toy
from transformer.interventions.experiment import Experiment
from transformer.predictions.comparison import word_diff
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.toy.learner import HEALTHY, ToyLearner
from ui.page.page import Page
from ui.shell import choice
from ui.shell.events import lead_to, mark_opened
from ui.show.drawings import show_map
from ui.words.texts import Marked, as_plain, common
from ui.words.word_diff import mark

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
        toys: Both training runs, for a bug in the training of a tiny model.
        experiment: Both runs, for a bug in the forward pass of the checkpoint.
    """

    diagnosis: Diagnosis
    outputs: tuple[str, str]
    views: tuple[AttentionView, AttentionView]
    location: Head
    toys: tuple[ToyLearner, ToyLearner] | None = None
    experiment: Experiment | None = None


def bug_exercise(p: Page) -> None:
    """Draw a case with its outputs and maps; after the guess, the bug, its code and its check."""
    config, name = p.checkpoint.config, p.checkpoint.name
    st.html(_STYLE)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.markdown(f"#### {p.md('bugs.title')}", width="stretch")
        number = int(choice.number(p.words("bugs.case"), 0, _MOST, 0, key=NUMBER, width=120))
        onward = {"on_click": choice.put, "args": (NUMBER, (number + 1) % _MOST)}
        st.button(p.words("bugs.another"), key="another patient", **onward)
        leave = {"on_click": choice.put, "args": (EXERCISE, "")}
        st.button(p.words("bugs.leave"), key="leave exercise", type="tertiary", **leave)
    if config.reads_images or config.encodes_sentences:
        p.nothing_to_show(p.md("bugs.of_text", name=name))
    case = _open_case(p, diagnosis_of(number, config))
    p.say("bugs.about_training" if case.toys else "bugs.about_checkpoint", small=True, name=name, sentence=p.sentence)
    _show_outputs(p, case)
    guess = _ask(p, case.diagnosis.fault, number)
    if guess:
        _answer(p, case, guess)
    _show_maps(p, case)
    if guess:
        _show_checks(p, case)
    else:
        reasons = [p.md(f"bugs.cannot_{reason}") for reason in dict.fromkeys(inapplicable(config).values())]
        st.caption(" ".join((p.md("bugs.guess_help", name=name), *reasons)))


def _open_case(p: Page, diagnosis: Diagnosis) -> Case:
    if diagnosis.in_training:
        toys = trained_toy(HEALTHY), trained_toy(diagnosis.fault)
        written = tuple(toy.generate(WORD) for toy in toys)
        views = tuple(self_attention_in_training(toy, WORD)[0] for toy in toys)
        return Case(diagnosis, written, views, Head(views[0].stack, views[0].kind, 0, 0), toys=toys)
    found = p.calc(padded_with_bug, p.trace, diagnosis.fault, name="experiment", wait="wait.case")
    place = found.most_changed_head or Head(*found.original.attention_kinds()[0], 0, 0)
    views = tuple(one.attention(place.stack, place.layer, place.kind) for one in (found.original, found.changed))
    return Case(diagnosis, (found.answer_before.text, found.answer_after.text), views, place, experiment=found)


def _show_outputs(p: Page, case: Case) -> None:
    before, after = map(_shortened, case.outputs)
    words = as_plain(after)
    if after != before and case.experiment:
        words = "".join(mark(piece) for piece in word_diff(before, after) if piece.fate != "removed").strip() or words
    with st.container(border=True, horizontal=True, key="bug outputs", gap="medium"):
        for name, shown in (("bugs.healthy", as_plain(before)), ("bugs.this_case", words)):
            with st.container(gap=None, width="stretch"):
                p.say(name, small=True)
                st.markdown(f"##### {shown or common('effect.empty')}")


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _show_maps(p: Page, case: Case) -> None:
    """Draw the head whose map differs most, in both runs, on one scale."""
    # Rows of cross-attention are named after the tokens that they predict.
    predicted = predicted_rows(case.experiment.original, case.location.kind) if case.experiment else None
    p.say("bugs.maps_training" if case.toys else "bugs.maps")
    with st.grid(2, min_column_width=330):
        for number, (name, view) in enumerate(zip(("bugs.healthy", "bugs.this_case"), case.views, strict=True)):
            drawn = attention_map(
                view, head=case.location.head, shifted_labels=predicted, of_other_output=True, height=_HEIGHT
            )
            place = f" · {head_name(case.location.layer, case.location.head)}" if case.experiment else ""
            show_map(drawn.with_metadata(title=p.words(name) + place), key=f"bug map {number}")


def _ask(p: Page, truth: str, number: int) -> str:
    """Offer the options; return the guess, "" if there is none yet."""
    key = (p.checkpoint.fingerprint, p.sentence, number)
    made = st.session_state.setdefault(_GUESSES, {}).get(key, "")
    with st.container(horizontal=True, key="bug guesses", gap="xsmall"):
        for fault in (*CHECKS, HEALTHY):
            # In this order, because a correct guess has the same key twice.
            sign = {made: ":material/close: ", truth: ":material/check: "}.get(fault, "") if made else ""
            st.button(
                f"{sign}{p.md(f'bugs.name_{fault}')} :small[{p.md(f'bugs.sign_{fault}')}]",
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
    fault, config = case.diagnosis.fault, p.checkpoint.config
    right, orders = guess == fault, _orders(p)
    names = {"name": p.md(f"bugs.full_{fault}", **orders), "guess": p.md(f"bugs.full_{guess}", **orders)}
    with st.container(key=_ANSWER):
        said = p.md("bugs.right" if right else "bugs.wrong", **names)
        (st.success if right else st.info)(said, icon=":material/check:" if right else ":material/close:")
        final = p.md(f"bugs.final_{config.norm}")
        p.say(f"bugs.why_{fault}", **orders, final=final, root=config.d_head**0.5, width=config.d_head)
        if fault == "positions" and not config.has_encoder:
            p.say("bugs.why_positions_decoder")
        if fault != HEALTHY:
            _show_lines(p, fault)


def _orders(p: Page) -> dict[str, Marked]:
    """Return the order of norm and sub-layer in training, and that of the bug “misplaced LayerNorm”."""
    trained = p.checkpoint.config.norm
    run = "post" if trained == "pre" else "pre"
    return {"trained": p.md(f"bugs.order_{trained}"), "run": p.md(f"bugs.order_{run}")}


def _show_lines(p: Page, fault: str) -> None:
    config = p.checkpoint.config
    lines = _CODE[_SCHEMES.get(config.positions, fault) if fault == "positions" else fault]
    if fault == "norm" and config.norm == "post":
        lines = lines[::-1]
    with st.grid(2, min_column_width=400):
        for name, line in zip(("bugs.code_right", "bugs.code_wrong"), lines, strict=True):
            with st.container(gap="xsmall"):
                p.say(name)
                st.code(line, language="python", wrap_lines=True)


def _show_checks(p: Page, case: Case) -> None:
    """Show all checks with their numbers on this case and on the original, and the code that runs them."""
    faults = (HEALTHY, case.diagnosis.fault)
    if case.toys:
        original, found = (p.calc(findings_in_training, fault, WORD, name="findings", shows=("",)) for fault in faults)
    else:
        original, found = (
            p.calc(findings_with, p.trace, fault, name="findings", shows=("",), wait="wait.examine") for fault in faults
        )
    st.markdown(f"#### {p.md('bugs.checks')}")
    st.markdown(_in_words(p, case, found, original))
    rows = [
        {
            p.words("bugs.column_check"): p.words(f"bugs.check_{name}"),
            p.words("bugs.healthy"): three_digits(one.value) if (one := original[name]) else "–",
            p.words("bugs.this_case"): three_digits(one.value) if (one := found[name]) else "–",
            p.words("bugs.column_fires"): p.words("bugs.not_asked" if one is None else _verdict(one.fires)),
        }
        for name in CHECKS
    ]
    p.table(rows, name="checks", caption=p.md("bugs.checks_caption_training" if case.toys else "bugs.checks_caption"))
    p.code(*_SOURCES[case.diagnosis.fault])


def _verdict(fires: bool) -> str:
    return "bugs.fires" if fires else "bugs.passes"


def _in_words(p: Page, case: Case, found: Findings, original: Findings) -> Marked:
    """Describe the check of this bug with its numbers."""
    fault = case.diagnosis.fault
    if fault == HEALTHY:
        return p.md("bugs.told_healthy")
    one, other = found[fault], original[fault]
    if one is None or other is None:
        return p.md("bugs.told_impossible")
    values = {"value": one.value, "healthy_value": other.value, **one.numbers}
    values |= {f"healthy_{name}": value for name, value in other.numbers.items()}
    if case.toys:
        values |= outcome(case.toys[1])
    values |= {"sum": p.md(f"bugs.sum_{p.checkpoint.config.norm}"), **_orders(p)}
    change = p.md("bugs.same" if case.outputs[0] == case.outputs[1] else "bugs.other")
    return p.md(f"bugs.told_{fault}", **values, change=change)
