"""The game: which patient this is, what was guessed, how many guesses were right."""

import streamlit as st

from transformer.faults.catalogue import FAULTS, HEALTHY, Diagnosis, diagnosis_of, inapplicable, next_with
from ui.shell import choice
from ui.shell.guidance.way import opened, way_to
from ui.shell.page import Page
from ui.shell.presentation.presenter import presenting
from ui.words.texts import as_plain

GUESSES = (*FAULTS, HEALTHY)
_GUESSES = ".st-key-bug-guesses button { padding-inline: 0.5rem; }"
# All in one row, in French, too; what they say need not be larger than the picture.
_PRESENTED = (
    ".st-key-bug-guesses button { padding: 0.1rem 0.3rem; min-height: 0; }.st-key-bug-guesses p { font-size: 0.82rem; }"
)
ANSWER = "bug answer"  # the container of what is said after a guess
_NUMBER, _STATE, _MOST = "patient", "bugs: guesses", 9999


def patient_number(p: Page) -> Diagnosis:
    """The row above the pictures: the patient's number (kept in the address), another one, a teacher's choice."""
    text, config = p.text, p.checkpoint.config
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(text["patient"], width="content")
        number = choice.number(text["patient"], 0, _MOST, 0, key=_NUMBER, width=150, label_visibility="collapsed")
        st.button(
            text["another"], icon=":material/personal_injury:", key="another patient", on_click=_go_to,
            args=((int(number) + 1) % _MOST,),
        )  # fmt: skip
        with st.popover(text["teacher"], icon=":material/school:", help=text["teacher_help"]):
            possible = [fault for fault in GUESSES if fault not in inapplicable(config)]
            for fault in possible:
                st.button(
                    text[f"name_{fault}"], key=f"teacher {fault}", type="tertiary", on_click=_go_to,
                    args=(next_with(fault, after=int(number), config=config) % _MOST,),
                )  # fmt: skip
        score(p)
    return diagnosis_of(int(number), config)


def _go_to(number: int) -> None:
    choice.put(_NUMBER, number)


def score(p: Page) -> None:
    """How many guesses of this session were right."""
    all_guesses = st.session_state.get(_STATE, {}).values()
    if all_guesses:
        right = sum(guess == truth for guess, truth in all_guesses)
        st.markdown(p.text["score"].format(right=right, count=len(all_guesses)), width="content")


def guessed(p: Page, diagnosis: Diagnosis) -> str:
    """Ask for a guess, above the pictures; return it, or "" before there is one."""
    all_guesses = st.session_state.setdefault(_STATE, {})
    key = (p.checkpoint.fingerprint, p.focus.sentence, int(choice.value(_NUMBER, "0")))
    made, _ = all_guesses.get(key, ("", ""))
    st.html(f"<style>{_PRESENTED if presenting() else _GUESSES}</style>")
    with st.container(horizontal=True, key="bug guesses", gap="xsmall"):
        for fault in GUESSES:
            marks = {
                made: ":material/close: ",
                diagnosis.fault: ":material/check: ",
            }  # a right guess is one that is right
            mark = marks.get(fault, "") if made else ""
            st.button(
                mark + p.text[f"name_{fault}"],
                key=f"guess {fault}",
                type="primary" if made and fault == diagnosis.fault else "secondary",
                disabled=bool(made),
                on_click=_guess,
                args=(key, fault, diagnosis.fault),
            )
    way_to(ANSWER)
    return made


def about_guesses(p: Page) -> None:
    """How many there are, and which of them this model cannot have."""
    reasons = [p.text[f"cannot_{reason}"] for reason in dict.fromkeys(inapplicable(p.checkpoint.config).values())]
    st.caption(" ".join((p.text["guess_help"].format(name=as_plain(p.checkpoint.name)), *reasons)))


def _guess(key: tuple, guess: str, truth: str) -> None:
    st.session_state[_STATE].setdefault(key, (guess, truth))
    opened(ANSWER)
