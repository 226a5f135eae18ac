"""The game: which case is shown, what was guessed, how many guesses were right."""

from collections.abc import Sequence

import streamlit as st

from transformer.config import ModelConfig
from transformer.faults.catalogue import FAULTS, HEALTHY, Diagnosis, diagnosis_of, inapplicable, next_with
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.lab import shown_head
from ui.shell import choice
from ui.shell.guidance.way import lead_to, mark_opened
from ui.shell.page import Page
from ui.shell.presentation.presenter import is_presenting
from ui.words.texts import as_plain
from views.bugs.bugs_view_model import (
    CheckpointCase,
    Findings,
    TrainingCase,
    bugs_view_model,
    experiment_with_bug,
    findings_of,
    padded,
)
from views.bugs.symptoms import show_question

GUESSES = (*FAULTS, HEALTHY)
_GUESSES = """
.st-key-bug-guesses button { padding-inline: 0.45rem; }
.st-key-bug-guesses p { line-height: 1.25; }
.st-key-bug-guesses p > span:last-child { display: block; font-size: 0.85em !important; opacity: 0.8; } /* its sign */
.st-key-bug-question > :first-child { min-width: min(100%, 22rem); } /* on a phone, the whole width */
"""
# All fit in one row, even in French; the labels can be smaller than the figure, which ends in the window.
_PRESENTED = (
    _GUESSES
    + """
.st-key-bug-guesses button { padding: 0.1rem 0.3rem; min-height: 0; }
.st-key-bug-guesses p { font-size: 0.82rem; }
.st-key-bug-question button { padding-block: 0; min-height: 0; }
.st-key-bug-outputs { padding: 0.2rem 0.8rem; }
.st-key-bug-outputs h5, .st-key-bug-question h5 { padding-top: 0; }
"""
)
ANSWER = "bug answer"  # the container of the explanation after a guess
_NUMBER, _STATE, _MOST = "patient", "bugs: guesses", 9999


def needs(p: Page) -> Sequence[str]:
    """Return the focus controls in the sidebar; none if the page itself chooses what it shows."""
    config = p.checkpoint.config
    number = choice.value(_NUMBER)
    known = number.isascii() and number.isdecimal() and len(number) <= len(str(_MOST))
    in_training = diagnosis_of(int(number) if known else _first(config), config).in_training
    return ("stack", "kind", "layer", "head") if not in_training and shown_head.is_chosen(p) else ()


def _first(config: ModelConfig) -> int:
    """Return the case that the page opens with: one whose output or attention visibly differs.

    A class seldom changes with a bug, but attention to padding is a bright column in every map.
    """
    bugs = ("padding", "norm") if config.n_classes else ("norm",)
    bug = next((bug for bug in bugs if bug not in inapplicable(config)), "")
    return next_with(bug, after=-1, config=config) if bug else 0


def choose_case(p: Page) -> CheckpointCase | TrainingCase:
    """Open the case of the address; draw its question and, beside it, the choice of another case."""
    text, config = p.text, p.checkpoint.config
    st.html(f"<style>{_PRESENTED if is_presenting() else _GUESSES}</style>")
    with st.container(horizontal=True, vertical_alignment="center", key="bug question", gap="small"):
        question = st.container(width="stretch")
        _score(p)
        first = _first(config)
        with st.popover(text["case_number"].format(number=choice.value(_NUMBER, str(first))), type="tertiary"):
            number = int(choice.number(text["case"], 0, _MOST, first, key=_NUMBER))
            st.caption(text["teacher"], help=text["teacher_help"])
            for fault in (fault for fault in GUESSES if fault not in inapplicable(config)):
                st.button(
                    text[f"name_{fault}"], key=f"teacher {fault}", type="tertiary", on_click=_go_to,
                    args=(next_with(fault, after=number, config=config) % _MOST,),
                )  # fmt: skip
        st.button(text["another"], key="another patient", on_click=_go_to, args=((number + 1) % _MOST,))
    case = _open_case(p, diagnosis_of(number, config))
    with question:
        show_question(p, case)
    return case


def _open_case(p: Page, diagnosis: Diagnosis) -> CheckpointCase | TrainingCase:
    if diagnosis.in_training:
        return bugs_view_model(diagnosis)
    run = padded(p.run, 0 if p.trace.source is None else len(p.trace.source) - p.focus.pads)

    def make() -> object:
        found = experiment_with_bug(load_trace(run), diagnosis.fault)
        _ = found.answer_before, found.answer_after  # computed here, while the page shows its progress
        return found

    found = store.get(run, ("experiment", "fault", diagnosis.fault), make, wait="wait.case")
    return bugs_view_model(diagnosis, found, shown_head.location(p))


def findings(p: Page, case: CheckpointCase | TrainingCase) -> tuple[Findings, Findings]:
    """Return all checks on the model of this case and on the original."""
    if isinstance(case, TrainingCase):
        return case.findings()
    with_bug, without = (
        store.get(p.run, ("findings", fault), lambda fault=fault: findings_of(p.trace, fault), wait="wait.examine")
        for fault in (case.fault, "")
    )
    return with_bug, without


def _go_to(number: int) -> None:
    choice.put(_NUMBER, number)


def _score(p: Page) -> None:
    """Show how many guesses of this session were right."""
    all_guesses = st.session_state.get(_STATE, {}).values()
    if all_guesses:
        right = sum(guess == truth for guess, truth in all_guesses)
        st.markdown(p.text["score"].format(right=right, count=len(all_guesses)), width="content")


def ask(p: Page, diagnosis: Diagnosis) -> str:
    """Offer the options; return the guess, "" if there is none yet."""
    all_guesses = st.session_state.setdefault(_STATE, {})
    key = (p.checkpoint.fingerprint, p.sentence, int(choice.value(_NUMBER, str(_first(p.checkpoint.config)))))
    made, _ = all_guesses.get(key, ("", ""))
    with st.container(horizontal=True, key="bug guesses", gap="xsmall"):
        for fault in GUESSES:
            # In this order, because a correct guess has the same key twice.
            marks = {made: ":material/close: ", diagnosis.fault: ":material/check: "}
            mark = marks.get(fault, "") if made else ""
            st.button(
                f"{mark}{p.text[f'name_{fault}']} :small[{p.text[f'sign_{fault}']}]",
                key=f"guess {fault}",
                type="primary" if made and fault == diagnosis.fault else "secondary",
                disabled=bool(made),
                on_click=_guess,
                args=(key, fault, diagnosis.fault),
            )
    lead_to(ANSWER)
    return made


def say_what_is_possible(p: Page) -> None:
    """State the number of options, and which of them cannot occur in this model."""
    reasons = [p.text[f"cannot_{reason}"] for reason in dict.fromkeys(inapplicable(p.checkpoint.config).values())]
    st.caption(" ".join((p.text["guess_help"].format(name=as_plain(p.checkpoint.name)), *reasons)))


def _guess(key: tuple, guess: str, truth: str) -> None:
    st.session_state[_STATE].setdefault(key, (guess, truth))
    mark_opened(ANSWER)
