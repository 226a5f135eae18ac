"""Branches of a text: at some step another word was forced, and the model went on from there. All stay beside the
original, in the session and in the address."""

from dataclasses import dataclass

import streamlit as st

from charts.toolkit.style import signed, three_digits
from transformer import Checkpoint, Decoding
from ui.shell import choice, page_state
from ui.shell.page import Page
from ui.words.texts import as_plain
from views.decoding import generation, stepper
from views.decoding.word_differences import marked

MOST = 8
_BRANCHES = "branches"
_CHOSEN = "branch"  # its number, from 1


@dataclass(frozen=True)
class Branch:
    """``kept``: ids that it has in common with the text it left; ``word``: the ids that were forced then."""

    kept: tuple[int, ...] = ()
    word: tuple[int, ...] = ()

    @property
    def forced(self) -> tuple[int, ...]:
        return (*self.kept, *self.word)


ORIGINAL = Branch()


def identity(p: Page, branch: Branch = ORIGINAL) -> tuple:
    """What tells one text from another, for the stepper; only what the focus says, without a branch."""
    return _identity((p.focus.checkpoint, p.focus.sentence, generation.given(p), p.run.source_pads), branch)


def _identity(text: tuple, branch: Branch) -> tuple:
    return text if branch == ORIGINAL else (*text, branch.forced)


def current(p: Page) -> tuple[tuple[Branch, ...], Branch]:
    """All branches of the focused text, and the one that is looked at (``ORIGINAL``: none)."""
    for key in (_BRANCHES, _CHOSEN):
        page_state.belongs_to(key, identity(p))
    branches = _read(choice.value(_BRANCHES), p.checkpoint)
    if (written := _write(branches)) != choice.value(_BRANCHES):
        choice.put(_BRANCHES, *filter(None, [written]), owner=identity(p))
    numbers = {0: [], **{number: [] for number in range(1, len(branches) + 1)}}
    chosen = choice.read_option(_CHOSEN, numbers, 0)
    return branches, branches[chosen - 1] if chosen else ORIGINAL


def force_another(p: Page, decoding: Decoding, step: int, branches: tuple[Branch, ...]) -> None:
    """Choose among this step's candidates, or type any word, and go on from there."""
    here = decoding.steps[step]
    others = {
        f"{candidate.display}  {three_digits(candidate.probability)}": candidate.id
        for candidate in here.candidates
        if candidate.id != here.chosen.id
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        asked = st.selectbox(
            p.text["force"].format(step=step + 1, token=as_plain(here.chosen.display)),
            list(others),
            index=None,
            key=f"force instead of {(*identity(p), *decoding.tokens.ids[: step + 1])}",
            placeholder=p.text["force_placeholder"],
            accept_new_options=True,
            help=p.text["force_help"],
            width=420,
        )
        word = _ids(p, asked, others)
        before = decoding.tokens.ids[:step]
        st.button(
            p.text["force_go"],
            icon=":material/call_split:",
            key="force go",
            disabled=not word or len(branches) >= MOST,
            on_click=_add,
            args=(identity(p), branches, Branch(before, word)),
        )
    if len(branches) >= MOST:
        st.caption(p.text["branches_full"].format(count=MOST))


def show(p: Page, settings: generation.Settings, branches: tuple[Branch, ...], chosen: Branch) -> None:
    """The original and all branches: what was forced where, the text, and how likely the model finds it."""
    if not branches:
        return
    original = generation.written(p, settings.strategy)
    st.markdown(f"**{p.text['branches']}**")
    with st.container(border=True, gap="xsmall", key="branches"):
        for index, branch in enumerate((ORIGINAL, *branches)):
            written = original if branch is ORIGINAL else generation.written(p, settings.strategy, forced=branch.forced)
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                _look(p, index, branch, is_chosen=branch == chosen)
                text = as_plain(written.text) if branch is ORIGINAL else marked(original.text, written.text)
                with st.container(width="stretch", gap=None):
                    st.markdown(text or "–")
                    st.caption(_numbers(p, written, original, branch))
                if branch is not ORIGINAL:
                    st.button(
                        p.text["branch_remove"],
                        icon=":material/close:",
                        type="tertiary",
                        key=f"remove branch {index}",
                        on_click=_remove,
                        args=(identity(p), branches, branches.index(chosen) + 1 if chosen in branches else 0, index),
                    )
    st.caption(p.text["branches_caption"])


def _look(p: Page, index: int, branch: Branch, *, is_chosen: bool) -> None:
    displays = "".join(p.checkpoint.tokenizer.display(id) for id in branch.word)
    name = p.text["branch_original"] if branch is ORIGINAL else p.text["branch"].format(
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


def _numbers(p: Page, written: Decoding, original: Decoding, branch: Branch) -> str:
    key = "branch_numbers_original" if branch is ORIGINAL else "branch_numbers"
    return p.text[key].format(
        sum=three_digits(written.log_probability),
        count=len(written.tokens),
        typical=three_digits(written.log_probability / len(written.tokens)),
        change=signed(written.log_probability - original.log_probability),
    )


def _ids(p: Page, asked: str | None, others: dict[str, int]) -> tuple[int, ...]:
    """The tokens of what was chosen or typed; a typed word begins with a space, a punctuation mark does not."""
    if not asked or not asked.strip():
        return ()
    if asked in others:
        return (others[asked],)
    word = asked.strip()
    return tuple(p.checkpoint.tokenizer.encode(word, continues=not word[0].isalnum()))


def _add(text: tuple, branches: tuple[Branch, ...], branch: Branch) -> None:
    if branch not in branches:
        branches = (*branches, branch)
        choice.put(_BRANCHES, _write(branches), owner=text)
    _go_to(text, branches.index(branch) + 1, branch)


def _go_to(text: tuple, index: int, branch: Branch) -> None:
    choice.put(_CHOSEN, *([index] if index else []), owner=text)
    stepper.move_to(len(branch.kept), text=_identity(text, branch))


def _remove(text: tuple, branches: tuple[Branch, ...], chosen: int, index: int) -> None:
    """``chosen``: the number of the branch that is looked at, 0 for the original."""
    left = branches[: index - 1] + branches[index:]
    choice.put(_BRANCHES, *([_write(left)] if left else []), owner=text)
    if index == chosen:
        _go_to(text, 0, ORIGINAL)
    elif index < chosen:
        choice.put(_CHOSEN, chosen - 1, owner=text)


def _write(branches: tuple[Branch, ...]) -> str:
    """ "5.17-300": after the tokens 5 and 17 came, 300 was forced; several with commas."""
    return ",".join(f"{'.'.join(map(str, b.kept))}-{'.'.join(map(str, b.word))}" for b in branches)


def _read(text: str, checkpoint: Checkpoint) -> tuple[Branch, ...]:
    """What ``_write`` wrote; what no answer could hold is left out, and what is more than ``MOST``."""
    size, longest, framing = checkpoint.config.vocabulary_size, checkpoint.config.max_length, checkpoint.framing
    branches: list[Branch] = []
    for part in text.split(","):
        kept, _, word = part.partition("-")
        numbers = [piece.split(".") if piece else [] for piece in (kept, word)]
        if not word or not all(n.isascii() and n.isdecimal() and len(n) < 8 for piece in numbers for n in piece):
            continue
        branch = Branch(*(tuple(map(int, piece)) for piece in numbers))
        inner = branch.forced[:-1]
        known = all(id < size and id not in framing.never for id in branch.forced)
        known = known and not set(inner) & set(framing.ends)
        if known and len(branch.forced) < longest and branch not in branches:
            branches.append(branch)
        if len(branches) == MOST:
            break
    return tuple(branches)
