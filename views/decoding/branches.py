"""Branches of a text: at some step another token was forced, and decoding continued from there.

All of them are kept with the original, in the session and in the address.
"""

import streamlit as st

from charts.toolkit.style import signed, three_digits
from ui.page.page import Page
from ui.shell import choice, page_state
from ui.words.texts import as_plain
from views.decoding import stepper
from views.decoding.decoding_parts import marked
from views.decoding.decoding_view_model import (
    MOST_BRANCHES,
    ORIGINAL,
    Branch,
    TextNumbers,
    WrittenText,
    given_of,
    read_branches,
    write_branches,
)

_BRANCHES = "branches"
_CHOSEN = "branch"  # the number of the branch, from 1


def identity(p: Page, branch: Branch = ORIGINAL) -> tuple:
    """Return what distinguishes one text from another, for the stepper: the focus without a branch."""
    return _identity((p.focus.checkpoint, p.sentence, given_of(p.run), p.run.source_pads), branch)


def _identity(text: tuple, branch: Branch) -> tuple:
    return text if branch == ORIGINAL else (*text, branch.forced)


def current(p: Page) -> tuple[tuple[Branch, ...], Branch]:
    """Return all branches of the focused text, and the one that is shown (``ORIGINAL``: none)."""
    for key in (_BRANCHES, _CHOSEN):
        page_state.belongs_to(key, identity(p))
    branches = read_branches(choice.value(_BRANCHES), p.checkpoint)
    if (written := write_branches(branches)) != choice.value(_BRANCHES):
        choice.put(_BRANCHES, *filter(None, [written]), owner=identity(p))
    numbers = {0: [], **{number: [] for number in range(1, len(branches) + 1)}}
    chosen = choice.read_option(_CHOSEN, numbers, 0)
    return branches, branches[chosen - 1] if chosen else ORIGINAL


def force_another(p: Page, text: WrittenText) -> None:
    """Draw the choice of a candidate of this step, or of any other word, from which decoding continues."""
    others = {f"{other.display}  {three_digits(other.probability)}": other.id for other in text.others}
    branch, known = text.branch_here, text.choices.branches
    here = text.decoding.steps[text.step].chosen
    with st.container(horizontal=True, vertical_alignment="bottom"):
        asked = st.selectbox(
            p.text["force"].format(step=text.step + 1, token=as_plain(here.display)),
            list(others),
            index=None,
            key=f"force instead of {(*identity(p), *branch.kept, here.id)}",
            placeholder=p.text["force_placeholder"],
            accept_new_options=True,
            help=p.text["force_help"],
            width=420,
        )
        word = _ids(p, asked, others)
        st.button(
            p.text["force_go"],
            icon=":material/call_split:",
            key="force go",
            disabled=not word or len(known) >= MOST_BRANCHES,
            on_click=_add,
            args=(identity(p), known, Branch(branch.kept, word)),
        )
    if len(known) >= MOST_BRANCHES:
        st.caption(p.text["branches_full"].format(count=MOST_BRANCHES))


def show(p: Page, text: WrittenText) -> None:
    """Draw the original and all branches: the forced token, the text, and its log-probability."""
    known, chosen = text.choices.branches, text.choices.branch
    if not known:
        return
    st.markdown(f"**{p.text['branches']}**")
    with st.container(border=True, gap="xsmall", key="branches"):
        for index, (branch, decoding, numbers) in enumerate(text.compared):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                _look(p, index, branch, is_chosen=branch == chosen)
                is_original = branch == ORIGINAL
                words = as_plain(decoding.text) if is_original else marked(text.original.text, decoding.text)
                with st.container(width="stretch", gap=None):
                    st.markdown(words or "–")
                    change = None if is_original else numbers.total - text.original.log_probability
                    st.caption(_numbers(p, numbers, change))
                if not is_original:
                    st.button(
                        p.text["branch_remove"],
                        icon=":material/close:",
                        type="tertiary",
                        key=f"remove branch {index}",
                        on_click=_remove,
                        args=(identity(p), known, known.index(chosen) + 1 if chosen in known else 0, index),
                    )
    st.caption(p.text["branches_caption"])


def _look(p: Page, index: int, branch: Branch, *, is_chosen: bool) -> None:
    displays = "".join(p.checkpoint.tokenizer.display(id) for id in branch.word)
    name = p.text["branch_original"] if branch == ORIGINAL else p.text["branch"].format(
        step=len(branch.kept) + 1, word=as_plain(displays)
    )  # fmt: skip
    st.button(
        name,
        type="primary" if is_chosen else "secondary",
        key=f"look at branch {index}",
        on_click=_go_to,
        args=(identity(p), index, branch),
        width=210,
    )


def _numbers(p: Page, numbers: TextNumbers, change: float | None) -> str:
    """Format the numbers of a text; ``change``: Σ log p minus the original's, or ``None``."""
    key = "branch_numbers_original" if change is None else "branch_numbers"
    return p.text[key].format(
        sum=three_digits(numbers.total),
        count=numbers.count,
        typical=three_digits(numbers.each),
        change="" if change is None else signed(change),
    )


def _ids(p: Page, asked: str | None, others: dict[str, int]) -> tuple[int, ...]:
    """Return the tokens of the chosen or typed text; a typed word gets a space, punctuation none."""
    if not asked or not asked.strip():
        return ()
    if asked in others:
        return (others[asked],)
    word = asked.strip()
    return tuple(p.checkpoint.tokenizer.encode(word, continues=not word[0].isalnum()))


def _add(text: tuple, branches: tuple[Branch, ...], branch: Branch) -> None:
    if branch not in branches:
        branches = (*branches, branch)
        choice.put(_BRANCHES, write_branches(branches), owner=text)
    _go_to(text, branches.index(branch) + 1, branch)


def _go_to(text: tuple, index: int, branch: Branch) -> None:
    choice.put(_CHOSEN, *([index] if index else []), owner=text)
    stepper.move_to(len(branch.kept), text=_identity(text, branch))


def _remove(text: tuple, branches: tuple[Branch, ...], chosen: int, index: int) -> None:
    """Draw the text of each branch; ``chosen``: the number of the one that is shown, 0 for the original."""
    left = branches[: index - 1] + branches[index:]
    choice.put(_BRANCHES, *([write_branches(left)] if left else []), owner=text)
    if index == chosen:
        _go_to(text, 0, ORIGINAL)
    elif index < chosen:
        choice.put(_CHOSEN, chosen - 1, owner=text)
